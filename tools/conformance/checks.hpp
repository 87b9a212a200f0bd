// Checks of a plugin that has no peers: a data set, a model. Each check runs in a process of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ddprun/error.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"
#include "plugin/registry.hpp"
#include "tools/conformance/printer.hpp"

namespace ddprun::conformance {

struct Check {
  std::string group;                  // for the table, and the first part of the name
  std::string name;                   // "samples: the same at every fetch"
  std::function<std::string()> body;  // returns what is wrong, or ""; an exception is wrong too
};

// A plugin without peers, and its checks.
struct Suite {
  std::string what;            // "data set" or "model"
  std::string option;          // the name of an option of the data set: "--option", "--data-option"
  std::function<void()> open;  // may throw what the user must correct
  std::vector<Check> checks{};
};

// Prints the name of the plugin, calls `open` in a child process, and runs the checks that are chosen, each in a child
// process: call it while there is one thread. Prints the results. Returns ok or gate. Throws the Error of `open`:
// usage, with the option that the user must correct ("--root", or `option`); plugin, if the plugin breaks its contract
// already there. Throws Error(usage) if no check is left.
ExitCode run_checks(const Suite& suite, const Tested& plugin, const CheckOptions& options);

// The checks of a data set against the contract of ddprun/plugin/dataset_plugin.hpp.
struct DatasetSettings {
  const ddprun_dataset_plugin* table = nullptr;
  DatasetContext context;
  int64_t samples = 64;  // at most so many of each split, spread evenly over it
};

// `settings` outlives the suite.
Suite dataset_suite(const DatasetSettings& settings);

// The checks of a model against the contract of ddprun/plugin/model_plugin.hpp. Only ddprun-conformance-model, which
// links LibTorch, has these functions.
struct ModelSettings {
  plugin::ModelPlugin plugin;
  std::map<std::string, std::string> options;         // model.options
  const ddprun_dataset_plugin* data_table = nullptr;  // gives shape, classes and samples
  DatasetContext data;
};
// Throws Error(plugin) as plugin::Registry does.
plugin::ModelPlugin find_model(const std::string& name, const plugin::Registry& registry);
// `settings` outlives the suite.
Suite model_suite(const ModelSettings& settings);

}  // namespace ddprun::conformance
