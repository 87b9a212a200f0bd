// The checks of a model against the contract of ddprun/plugin/model_plugin.hpp.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/datasets.hpp"
#include "plugin/registry.hpp"
#include "tools/conformance/checks.hpp"

namespace ddprun::conformance {

struct ModelSettings {
  plugin::ModelPlugin plugin;
  std::map<std::string, std::string> options;         // model.options
  const ddprun_dataset_plugin* data_table = nullptr;  // gives shape, classes and samples
  DatasetContext data;
};

// Finds the plugin. Throws Error(plugin) as plugin::Registry does.
plugin::ModelPlugin find_model(const std::string& name, const plugin::Registry& registry);

// Opens the data set and makes the model once, in another process. Throws Error(usage) if one of them refuses.
void require_model(const ModelSettings& settings);

std::vector<Check> model_checks(const ModelSettings& settings);

}  // namespace ddprun::conformance
