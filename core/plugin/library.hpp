// An opened shared library: the only header of the house behind which Boost.DLL lies.
#pragma once

#include <string>

#include "plugin/search.hpp"

namespace ddprun::plugin {

class Library {
 public:
  // Loads the file, or finds it loaded. It stays loaded until the process ends: plugins start threads and register
  // handlers that an unload would pull the ground from. Any thread. Throws Error(plugin) with the loader's words.
  static Library open(const File& file);

  // The address of an exported symbol, or null.
  const void* symbol(const std::string& name) const;

 private:
  explicit Library(const void* handle) : handle_(handle) {}
  const void* handle_;  // a boost::dll::shared_library that is never destroyed
};

}  // namespace ddprun::plugin
