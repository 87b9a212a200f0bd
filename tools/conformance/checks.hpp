// Checks of a plugin that has no peers: a data set, a model. Each check runs in a process of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ddprun/error.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"
#include "tools/conformance/printer.hpp"

namespace ddprun::conformance {

struct Check {
  std::string group;                  // for the table, and the first part of the name
  std::string name;                   // "samples: the same at every fetch"
  std::function<std::string()> body;  // returns what is wrong, or ""; an exception is wrong too
};

// Calls `open` in a child process, before any check. Throws its Error: usage, with the option that the user must
// correct ("--root", or `option` for an option of a data set); plugin, if the plugin breaks its contract already here.
void require_opening(const std::string& option, const std::function<void()>& open);

// Runs the checks, each in a child process: call it while there is one thread. Prints the results; `what` is "data set"
// or "model". Returns ok or gate; throws Error(usage) if no check is left.
ExitCode run_checks(const std::string& what, const Tested& plugin, const std::vector<Check>& checks,
                    const CheckOptions& options);

// The checks of a data set against the contract of ddprun/plugin/dataset_plugin.hpp.
struct DatasetSettings {
  const ddprun_dataset_plugin* table = nullptr;
  DatasetContext context;
  int64_t samples = 64;  // at most so many of each split, spread evenly over it
};

// Opens the data set once, in another process.
void require_opening(const DatasetSettings& settings);

std::vector<Check> dataset_checks(const DatasetSettings& settings);

}  // namespace ddprun::conformance
