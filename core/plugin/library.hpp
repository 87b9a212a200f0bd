// An opened shared library. The only module that uses Boost.DLL.
#pragma once

#include <functional>
#include <string>

#include "plugin/search.hpp"

namespace ddprun::plugin {

class Library {
 public:
  // Loads the file if it is not loaded yet; first in a child process, which then calls check(). It stays loaded until
  // the process ends, because plugins start threads and register handlers that an unload would break. Thread-safe.
  // Throws Error(plugin): as require_complete() and probe(), or with the dynamic loader's message.
  static Library open(const File& file, const std::function<void(const Library&)>& check);

  // The address of an exported symbol, or null.
  const void* symbol(const std::string& name) const;

 private:
  explicit Library(const void* handle) : handle_(handle) {}
  const void* handle_;  // a boost::dll::shared_library that is never destroyed
};

}  // namespace ddprun::plugin
