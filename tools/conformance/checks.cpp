#include "tools/conformance/checks.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>

#include "tools/conformance/printer.hpp"
#include "tools/conformance/ranks.hpp"

namespace ddprun::conformance {
namespace {

constexpr std::chrono::seconds kCheck{90};

}  // namespace

std::string in_process(const std::function<std::string()>& body) {
  const auto report = [&](testing::Rank& rank) { rank.report(body()); };
  const auto outcome = testing::run_ranks(1, testing::As::processes, kCheck, report).front();
  if (outcome.ok() && !outcome.records.empty()) return outcome.records.front();
  if (outcome.end == testing::Outcome::End::threw) return outcome.error;
  const std::string text = outcome.describe();
  return "the process of the check: " + text.substr(text.find(": ") + 2);
}

ExitCode run_checks(const std::string& what, const std::vector<Check>& checks, const CheckOptions& options) {
  Printer printer(options.verbose);
  bool any = false;
  for (const Check& check : checks) {
    const auto in_name = [&](const std::string& text) { return check.name.find(text) != std::string::npos; };
    if (!options.filters.empty() && std::none_of(options.filters.begin(), options.filters.end(), in_name)) continue;
    any = true;
    if (options.list) {
      std::cout << what << ": " << check.name << '\n';
      continue;
    }
    const std::string wrong = in_process(check.body);
    const auto state = wrong.empty() ? Result::State::passed : Result::State::failed;
    printer.add({what, check.group, check.name, state, wrong, {}});
  }
  if (!any) throw Error(ExitCode::usage, "--filter: no check has this in its name; --list prints the names");
  if (options.list) return ExitCode::ok;
  printer.end_world(what);
  return printer.close();
}

}  // namespace ddprun::conformance
