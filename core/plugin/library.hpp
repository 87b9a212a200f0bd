// An opened shared library. The only module that uses Boost.DLL.
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

}  // namespace ddprun::plugin
