#include "tools/conformance/printer.hpp"

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::conformance {
namespace {

using State = Result::State;

std::string indented(const std::string& text) {
  std::string result = "        ";
  for (const char c : text) result += c == '\n' ? "\n        " : std::string(1, c);
  return result + '\n';
}

const char* name_of(State state) {
  constexpr const char* kNames[] = {"passed", "failed", "not run"};
  return kNames[static_cast<std::size_t>(state)];
}

std::size_t count_of(const std::vector<Result>& results, State state) {
  return static_cast<std::size_t>(std::ranges::count(results, state, &Result::state));
}

std::size_t combinations_of(const std::vector<Skipped>& undeclared) {
  std::size_t sum = 0;
  for (const Skipped& one : undeclared) sum += one.combinations;
  return sum;
}

}  // namespace

Printer::Printer(CheckOptions options, Tested plugin) : options_(std::move(options)), plugin_(std::move(plugin)) {
  require_folder(options_.json, ExitCode::usage, "--json " + options_.json);
}

void Printer::add(const Result& result) {
  results_.push_back(result);
  const std::string name = result.world + ": " + result.name;
  if (result.state == State::passed && options_.verbose) std::cout << "passed  " << name << '\n';
  if (result.state == State::failed) std::cout << "FAILED  " << name << '\n' << indented(result.text) << std::flush;
}

void Printer::end_world(const std::string& world) {
  struct Group {
    std::string name;
    std::size_t passed = 0, failed = 0;
  };
  std::vector<Group> groups;  // in the order in which they first appear
  for (const Result& one : results_) {
    if (one.world != world || one.state == State::not_run) continue;
    auto group = std::ranges::find(groups, one.group, &Group::name);
    if (group == groups.end()) group = groups.insert(group, {one.group});
    ++(one.state == State::failed ? group->failed : group->passed);
  }
  for (const auto& [name, passed, failed] : groups) {
    std::cout << std::left << std::setw(20) << world << std::setw(24) << name << std::right << std::setw(6) << passed
              << " passed";
    if (failed > 0) std::cout << std::setw(6) << failed << " FAILED";
    std::cout << '\n';
  }
  std::cout << std::flush;
}

ExitCode Printer::close() {
  std::map<std::pair<std::string, std::string>, std::size_t> left_out;  // cases not run, by world and reason
  for (const Result& one : results_) {
    if (one.state == State::not_run) ++left_out[{one.world, one.text}];
  }
  for (const Skipped& one : undeclared_) std::cout << "skipped: " << one.what << '\n';
  for (const auto& [where, count] : left_out) {
    std::cout << "not run: " << where.first << ": " << count << " cases: " << where.second << '\n';
  }
  const std::size_t failed = count_of(results_, State::failed), not_run = count_of(results_, State::not_run);
  std::cout << count_of(results_, State::passed) << " passed, " << failed << " failed, " << combinations_of(undeclared_)
            << " skipped";
  if (not_run > 0) std::cout << ", " << not_run << " not run";
  std::cout << std::endl;
  if (!options_.json.empty()) replace_file(options_.json, json_of(plugin_, results_, undeclared_));
  return failed == 0 ? ExitCode::ok : ExitCode::gate;
}

std::string json_of(const Tested& plugin, const std::vector<Result>& results, const std::vector<Skipped>& undeclared) {
  using nlohmann::ordered_json;
  const auto json_of_case = [](const Result& one) {
    return ordered_json{{"world", one.world},
                        {"group", one.group},
                        {"name", one.name},
                        {"state", name_of(one.state)},
                        {"text", one.text}};
  };
  const auto json_of_skipped = [](const Skipped& one) {
    return ordered_json{{"what", one.what}, {"combinations", one.combinations}};
  };
  ordered_json all = {{"plugin", plugin.name}, {"version", plugin.version}, {"path", plugin.path}};
  if (plugin.seed) all["seed"] = *plugin.seed;
  all.update({{"passed", count_of(results, State::passed)},
              {"failed", count_of(results, State::failed)},
              {"skipped", combinations_of(undeclared)},
              {"not_run", count_of(results, State::not_run)},
              {"cases", tools::each(results, json_of_case)},
              {"undeclared", tools::each(undeclared, json_of_skipped)}});
  // A plugin may log any bytes.
  return all.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace ddprun::conformance
