#include "tools/conformance/checks.hpp"

#include <chrono>
#include <exception>
#include <iostream>
#include <optional>

#include "base/subprocess.hpp"
#include "data/datasets.hpp"

namespace ddprun::conformance {
namespace {

constexpr std::chrono::seconds kCheck{90};

// What is wrong, or "".
std::string result_of(const Check& check, bool no_fork) {
  try {
    return no_fork ? check.body() : text_from_subprocess(check.body, kCheck);
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

void require_opening(const std::string& option, const std::function<void()>& open) {
  text_from_subprocess(
      [&] {
        try {
          open();
        } catch (const data::DatasetError& error) {
          const bool is_option = error.key().starts_with("options.");
          throw Error(error.code(), (is_option ? option + " " + error.key().substr(8) : "--" + error.key()) + ": " +
                                        std::string(error.what()));
        }
        return std::string();
      },
      std::nullopt);
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
    const std::string wrong = result_of(check, options.no_fork);
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
