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

void require_opening(const Suite& suite) {
  const auto open = [&] {
    try {
      suite.open();
    } catch (const data::DatasetError& error) {
      const bool is_option = error.key().starts_with("options.");
      const std::string option = is_option ? suite.option + " " + error.key().substr(8) : "--" + error.key();
      throw Error(error.code(), option + ": " + error.what());
    }
    return std::string();
  };
  text_from_subprocess(open, std::nullopt);
}

}  // namespace

ExitCode run_checks(const Suite& suite, const Tested& plugin, const CheckOptions& options) {
  std::cout << plugin.name << ' ' << plugin.version << (plugin.path.empty() ? "" : ", " + plugin.path) << std::endl;
  require_opening(suite);
  Printer printer(options, plugin);
  bool any = false;
  for (const Check& check : suite.checks) {
    if (!options.chooses(check.name)) continue;
    any = true;
    if (options.list) {
      std::cout << suite.what << ": " << check.name << '\n';
      continue;
    }
    const std::string wrong = result_of(check, options.no_fork);
    const auto state = wrong.empty() ? Result::State::passed : Result::State::failed;
    printer.add({suite.what, check.group, check.name, state, wrong});
  }
  if (!any) throw Error(ExitCode::usage, kNoneChosen);
  if (options.list) return ExitCode::ok;
  printer.end_world(suite.what);
  return printer.close();
}

}  // namespace ddprun::conformance
