#include "tools/conformance/checks.hpp"

#include <chrono>
#include <exception>
#include <iostream>

#include "testing/ranks.hpp"
#include "tools/conformance/printer.hpp"

namespace ddprun::conformance {
namespace {

constexpr std::chrono::seconds kCheck{90};

// In this process; a crash ends it.
std::string in_this_process(const std::function<std::string()>& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

std::string in_process(const std::function<std::string()>& body) {
  const auto report = [&](testing::Rank& rank) { rank.report(body()); };
  const auto outcome = testing::run_ranks(1, testing::As::processes, kCheck, report).front();
  if (outcome.ok() && !outcome.records.empty()) return outcome.records.front();
  if (outcome.end == testing::Outcome::End::threw) return outcome.error;
  const std::string text = outcome.describe();
  return "the process of the check: " + text.substr(text.find(": ") + 2);
}

ExitCode run_checks(const std::string& what, const Tested& plugin, const std::vector<Check>& checks,
                    const CheckOptions& options) {
  Printer printer(options, plugin);
  bool any = false, stopped = false;
  for (const Check& check : checks) {
    if (!options.chooses(check.name)) continue;
    any = true;
    if (options.list) {
      std::cout << what << ": " << check.name << '\n';
      continue;
    }
    if (stopped) {
      printer.add({what, check.group, check.name, Result::State::not_run, kFailFast, {}});
      continue;
    }
    const std::string wrong = options.no_fork ? in_this_process(check.body) : in_process(check.body);
    const auto state = wrong.empty() ? Result::State::passed : Result::State::failed;
    printer.add({what, check.group, check.name, state, wrong, {}});
    stopped = options.fail_fast && !wrong.empty();
  }
  if (!any) throw Error(ExitCode::usage, kNoneChosen);
  if (options.list) return ExitCode::ok;
  printer.end_world(what);
  return printer.close();
}

}  // namespace ddprun::conformance
