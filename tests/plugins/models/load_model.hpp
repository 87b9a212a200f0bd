// A model as the program loads it: by name, through the registry.
#pragma once

#include <string>

#include "plugin/registry.hpp"
#include "train/loop/model_loader.hpp"

namespace ddprun::testing {

// The plugin from this build.
inline plugin::ModelPlugin model_plugin(const std::string& name) {
  return plugin::Registry({DDPRUN_PLUGINS}).model(name, train::torch_version(), train::cxx11_abi());
}

inline train::ModelPtr load_model(const std::string& name, const ModelContext& context) {
  return train::make_model(model_plugin(name), context);
}

}  // namespace ddprun::testing
