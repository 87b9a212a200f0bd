#include "record/collectives.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "record/run_dir.hpp"

namespace ddprun::record {
namespace {

using nlohmann::ordered_json;

bool is_absent(double value) {
  return std::isnan(value);
}
bool is_absent(int64_t value) {
  return value < 0;
}
bool is_absent(const std::string& value) {
  return value.empty();
}

template <class Record>
ordered_json object_of(const Record& record) {
  ordered_json object = ordered_json::object();
  for_each_key(record, [&](const char* key, const auto& value) {
    if (!is_absent(value)) object[key] = value;
  });
  return object;
}

}  // namespace

std::string collectives_path(const std::string& run_dir, int64_t rank) {
  return file_in(run_dir, fmt::format("{}{}.json", kCollectivesPrefix, rank));
}

void write_collectives(const std::string& run_dir, const RankCollectives& collectives) {
  // One line for each call. Error messages of other programs may be in it, in any encoding.
  const auto line_of = [](const ordered_json& object) {
    return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  };
  std::string text = line_of(object_of(collectives));
  text.back() = ',';
  text += "\"calls\":[";
  const char* before = "\n";
  for (const CollectiveCall& call : collectives.calls) {
    text += before + line_of(object_of(call));
    before = ",\n";
  }
  text += "\n]}\n";
  replace_file(collectives_path(run_dir, collectives.rank), text);
}

}  // namespace ddprun::record
