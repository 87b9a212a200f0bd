// What all three suites (communication, data set, model) have in common on the command line.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "cli/console/command_line.hpp"

namespace ddprun::conformance {

struct CheckOptions {
  std::vector<std::string> filters;   // only names with one of these texts
  std::vector<std::string> excludes;  // no name with one of these texts
  bool list = false;                  // print the names, run none
  bool verbose = false;
  bool fail_fast = false;  // run nothing after the first failure
  bool no_fork = false;    // run in this process, and never end it for being slow: for a debugger
  std::string junit;       // file for the results as JUnit XML; "": none
  std::string json;        // file for the results as JSON; "": none

  bool chooses(const std::string& name) const {
    const auto in_name = [&](const std::string& text) { return name.find(text) != std::string::npos; };
    return (filters.empty() || std::any_of(filters.begin(), filters.end(), in_name)) &&
           std::none_of(excludes.begin(), excludes.end(), in_name);
  }
};

// Why a check was not run.
inline constexpr const char* kFailFast = "a check failed before, and --fail-fast is given";
inline constexpr const char* kNoneChosen =
    "--filter, --exclude: no check is left; --list without them prints all names";

inline void add_check_options(CLI::App& to, CheckOptions& options) {
  console::add_repeated(to, "--filter", options.filters, "TEXT",
                        "Run only checks with this text in their name. May be repeated.");
  console::add_repeated(to, "--exclude", options.excludes, "TEXT",
                        "Run no check with this text in its name. May be repeated.");
  to.add_flag("--fail-fast", options.fail_fast, "Run nothing more after the first failure.");
  to.add_flag("--no-fork", options.no_fork,
              "Run in this process, with ranks as threads, and end nothing for being slow, as a debugger needs it.");
  to.add_option("--junit", options.junit, "Write the results to this file as JUnit XML.")->type_name("FILE");
  to.add_option("--json", options.json, "Write the results to this file as JSON.")->type_name("FILE");
  to.add_flag("--list", options.list, "Print the names of the checks, and run none.");
  to.add_flag("--verbose", options.verbose,
              "Print every check, not only those that fail, and all that a communication plugin logs.");
}

}  // namespace ddprun::conformance
