// Makes a Model from a model plugin. plugin::Registry has already compared the plugin's Torch version and C++ ABI.
#pragma once

#include <memory>
#include <string>

#include "ddprun/plugin/dataset_plugin.hpp"
#include "ddprun/plugin/model_plugin.hpp"
#include "plugin/registry.hpp"

namespace ddprun::train {

// The LibTorch version of this build, which plugin::Registry::model compares with the plugin's.
std::string torch_version();
int cxx11_abi();

using ModelPtr = std::shared_ptr<Model>;  // returns the model to the plugin that made it

// Makes the model. Throws Error(usage) with the plugin's message if the plugin rejects its options or the data's shape,
// and Error(failure) if a tensor of the model does not fit into memory.
ModelPtr make_model(const plugin::ModelPlugin& plugin, const ModelContext& context);

// What a model of this data set is made from.
ModelContext model_context(std::map<std::string, std::string> options, const Dataset& data);

}  // namespace ddprun::train
