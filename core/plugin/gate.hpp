// The ABI check of a plugin's function table, before any of its functions is called.
#pragma once

#include "plugin/library.hpp"

namespace ddprun::plugin {

// Loads the file and checks it. Never throws Error: a rejection is the content.
Listed inspect(const File& file);

// The table that the library exports, checked. Throws Error(plugin): no entry point, wrong ABI (with both versions), a
// required function is missing, its name differs from the file's, or what it declares cannot be right.
const ddprun_comm_plugin* comm_table(const File& file, const Library& library);
const ddprun_model_plugin* model_table(const File& file, const Library& library);
const ddprun_dataset_plugin* dataset_table(const File& file, const Library& library);

// Throws Error(plugin) unless the plugin was built for this Torch version (major.minor.patch; a suffix such as +cpu is
// ignored) and this value of _GLIBCXX_USE_CXX11_ABI.
void require_torch(const File& file, const ddprun_model_plugin& table, const std::string& torch_version, int cxx11_abi);

}  // namespace ddprun::plugin
