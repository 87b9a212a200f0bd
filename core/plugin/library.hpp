// An opened shared library and the check of its table. The only module that uses Boost.DLL.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "plugin/search.hpp"

namespace ddprun::plugin {

// Calls load() in a child process, without its output, and so finds out what loading a library does before this process
// loads it. An Error that load() throws is ignored. Throws Error(plugin) if the child crashes, exits, throws something
// else, or works longer than `limit`. One thread at a time.
void probe(const File& file, const std::function<void()>& load, std::chrono::seconds limit = std::chrono::seconds(60));

class Library {
 public:
  // Loads the file if it is not loaded yet; first in a child process, which then calls check(). It stays loaded until
  // the process ends, because plugins start threads and register handlers that an unload would break. Thread-safe.
  // Throws Error(plugin): as probe(), or with the dynamic loader's message.
  static Library open(const File& file, const std::function<void(const Library&)>& check);

  // The address of an exported symbol, or null.
  const void* symbol(const std::string& name) const;

 private:
  explicit Library(const void* handle) : handle_(handle) {}
  const void* handle_;  // a boost::dll::shared_library that is never destroyed
};

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
