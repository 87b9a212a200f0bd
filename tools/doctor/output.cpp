#include "tools/doctor/rules.hpp"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/text.hpp"
#include "cli/console/table.hpp"
#include "ddprun/plugin/words.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::doctor {
namespace {

std::string count_text(const std::vector<Finding>& findings, State state) {
  return console::several(std::ranges::count(findings, state, &Finding::state), name_of(state));
}

}  // namespace

// Names of interfaces and variables come from outside, hence printable().
std::string table_text(const std::vector<Finding>& findings) {
  console::Table table({{"group"}, {"what"}, {"state"}, {"finding"}});
  std::string group;
  for (const Finding& one : findings) {
    table.row({one.group == group ? "" : one.group, printable(one.name), name_of(one.state), printable(one.value)});
    if (!one.advice.empty()) table.row({"", "", "", "-> " + printable(one.advice)});
    group = one.group;
  }
  constexpr int kReadable = 140;
  const int columns = columns_of(STDOUT_FILENO);
  return table.text(0, columns > 0 ? columns : kReadable) + count_text(findings, State::error) + ", " +
         count_text(findings, State::warning) + ", " + count_text(findings, State::note) + "\n";
}

nlohmann::ordered_json to_json(const std::vector<Finding>& findings) {
  return tools::each(findings, [](const Finding& one) {
    return nlohmann::ordered_json{{"group", one.group},
                                  {"name", one.name},
                                  {"state", name_of(one.state)},
                                  {"value", one.value},
                                  {"advice", one.advice}};
  });
}

void write_json(const std::string& file, const nlohmann::ordered_json& value) {
  replace_file(file == "-" ? "/dev/stdout" : file,
               value.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n');
}

bool has_error(const std::vector<Finding>& findings) {
  return std::ranges::count(findings, State::error, &Finding::state) > 0;
}

}  // namespace ddprun::doctor
