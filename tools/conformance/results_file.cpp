#include "tools/conformance/results_file.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

namespace ddprun::conformance {
namespace {

using State = Result::State;

const char* name_of(State state) {
  switch (state) {
    case State::passed: return "passed";
    case State::failed: return "failed";
    case State::skipped: return "skipped";
    case State::not_run: return "not run";
  }
  return "";
}

std::size_t count_of(const std::vector<Result>& results, State state) {
  return static_cast<std::size_t>(
      std::count_if(results.begin(), results.end(), [&](const Result& one) { return one.state == state; }));
}

// XML has no character for most of the control characters.
std::string escaped(const std::string& text) {
  std::string xml;
  for (const char c : text) {
    switch (c) {
      case '&': xml += "&amp;"; break;
      case '<': xml += "&lt;"; break;
      case '>': xml += "&gt;"; break;
      case '"': xml += "&quot;"; break;
      case '\n': xml += "&#10;"; break;
      default: xml += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return xml;
}

void write_counts(std::ostream& to, const std::vector<Result>& results) {
  to << "tests=\"" << results.size() << "\" failures=\"" << count_of(results, State::failed)
     << "\" errors=\"0\" skipped=\"" << count_of(results, State::skipped) + count_of(results, State::not_run) << '"';
}

void write_case(std::ostream& to, const Result& one) {
  to << "    <testcase classname=\"" << escaped(one.world + "." + one.group) << "\" name=\"" << escaped(one.name)
     << '"';
  if (one.state == State::passed) {
    to << "/>\n";
    return;
  }
  to << ">\n";
  if (one.state == State::failed) {
    const std::string first = one.text.substr(0, one.text.find('\n'));
    to << "      <failure message=\"" << escaped(first) << "\">" << escaped(one.text) << "</failure>\n";
  } else {
    const std::string why = one.state == State::not_run ? "not run: " : "";
    to << "      <skipped message=\"" << escaped(why + one.text) << "\"/>\n";
  }
  to << "    </testcase>\n";
}

}  // namespace

std::string junit_of(const Tested& plugin, const std::vector<Result>& results) {
  std::ostringstream to;
  std::vector<std::string> worlds;
  std::map<std::string, std::vector<Result>> of_world;
  for (const Result& one : results) {
    if (of_world.count(one.world) == 0) worlds.push_back(one.world);
    of_world[one.world].push_back(one);
  }
  to << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"" << escaped("conformance of " + plugin.name)
     << "\" ";
  write_counts(to, results);
  to << ">\n";
  for (const std::string& world : worlds) {
    to << "  <testsuite name=\"" << escaped(world) << "\" ";
    write_counts(to, of_world[world]);
    to << ">\n";
    for (const Result& one : of_world[world]) write_case(to, one);
    to << "  </testsuite>\n";
  }
  to << "</testsuites>\n";
  return to.str();
}

std::string json_of(const Tested& plugin, const std::vector<Result>& results, const std::vector<Skipped>& undeclared) {
  nlohmann::ordered_json all;
  all["plugin"] = plugin.name;
  all["version"] = plugin.version;
  all["path"] = plugin.path;
  if (plugin.seed) all["seed"] = *plugin.seed;
  for (const State state : {State::passed, State::failed, State::skipped, State::not_run}) {
    all[state == State::not_run ? "not_run" : name_of(state)] = count_of(results, state);
  }
  all["cases"] = nlohmann::ordered_json::array();
  for (const Result& one : results) {
    all["cases"].push_back({{"world", one.world},
                            {"group", one.group},
                            {"name", one.name},
                            {"state", name_of(one.state)},
                            {"text", one.text},
                            {"notes", one.notes}});
  }
  all["undeclared"] = nlohmann::ordered_json::array();
  for (const Skipped& one : undeclared) {
    all["undeclared"].push_back({{"what", one.what}, {"combinations", one.combinations}});
  }
  // A plugin may log any bytes.
  return all.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace ddprun::conformance
