// From a model plugin's table to a Model. The plugin's Torch and C++ ABI have been compared by plugin::Registry.
#pragma once

#include <memory>
#include <string>

#include "ddprun/plugin/model_plugin.hpp"
#include "plugin/registry.hpp"

namespace ddprun::train {

// What plugin::Registry::model compares a plugin with: this program's own build.
std::string torch_version();
int cxx11_abi();

// Gives a model back to the plugin that made it.
struct ModelDeleter {
  void (*destroy)(void*) = nullptr;
  void operator()(Model* model) const { destroy(model); }
};
using ModelPtr = std::unique_ptr<Model, ModelDeleter>;

// Makes the model. Throws Error(usage) with the plugin's own words when it refuses its options or the data's shape.
ModelPtr make_model(const plugin::ModelPlugin& plugin, const ModelContext& context);

}  // namespace ddprun::train
