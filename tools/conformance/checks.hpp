// Checks of a plugin that has no peers: a data set, a model. Each check runs in a process of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ddprun/error.hpp"
#include "tools/conformance/printer.hpp"

namespace ddprun::conformance {

struct Check {
  std::string group;                  // for the table, and the first part of the name
  std::string name;                   // "samples: the same at every fetch"
  std::function<std::string()> body;  // returns what is wrong, or ""; an exception is wrong too
};

// Runs `body` in a child process. Returns its text, or how the process ended: "killed by signal 11 (...)". It forks, so
// the caller must have only one thread.
std::string in_process(const std::function<std::string()>& body);

// Prints the results; `what` is "data set" or "model". Returns ok or gate; throws Error(usage) if no check is left.
ExitCode run_checks(const std::string& what, const Tested& plugin, const std::vector<Check>& checks,
                    const CheckOptions& options);

}  // namespace ddprun::conformance
