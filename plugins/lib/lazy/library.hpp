// A backend in a lazily loaded library. ddprun loads every plugin to read its declaration; only a rank that
// communicates loads the second library and its dependencies (a transport, a device's runtime).
#pragma once

#include <dlfcn.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::lazy {

// CommBackend is a C++ class: plugin and library must have been built from the same headers. CMake computes this from
// their text, so it changes whenever a virtual function does.
inline constexpr char kVersion[] = DDPRUN_LAZY_VERSION;

// The function that the library exports under `Library::make`: joins, as a backend's constructor does. Collective; the
// caller owns the result. Throws CommError.
using Make = CommBackend*(const Host&);

struct Library {
  const void* plugin;   // any address in the plugin: the library is in its folder
  const char* file;     // libddprun_<name>_backend.so
  const char* make;     // the name of its Make
  const char* version;  // the name of its copy of kVersion
  const char* cure;     // what to do if the library, or a dependency, is missing
};

// Loads the library and joins. The library is never unloaded: what transports start outlives a communicator. Throws
// CommStatus::unsupported if the library cannot be loaded (with the loader's message), or was built from other headers.
inline std::unique_ptr<CommBackend> join(const Library& library, const Host& host) {
  Dl_info plugin = {};
  dladdr(library.plugin, &plugin);
  const auto path = std::filesystem::path(plugin.dli_fname).replace_filename(library.file);
  void* const loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    throw CommError(CommStatus::unsupported, std::string("a library is missing: ") + dlerror() +
                                                 "; it was there when the plugin was built: " + library.cure);
  }
  const auto* const version = static_cast<const char*>(dlsym(loaded, library.version));
  void* const make = dlsym(loaded, library.make);
  if (version == nullptr || make == nullptr || std::string_view(version) != kVersion) {
    throw CommError(CommStatus::unsupported, path.string() + " was built from other headers than its plugin (version " +
                                                 (version == nullptr ? "unknown" : version) + ", the plugin has " +
                                                 kVersion + "): build and install both together");
  }
  return std::unique_ptr<CommBackend>(reinterpret_cast<Make*>(make)(host));
}

}  // namespace ddprun::lazy

// Defines what such a library exports: ddprun_<name>_backend_make and ddprun_<name>_backend_version.
#define DDPRUN_LAZY_BACKEND(name, Class)                                                                             \
  extern "C" {                                                                                                       \
  __attribute__((visibility("default"))) extern const char ddprun_##name##_backend_version[];                        \
  constinit const char ddprun_##name##_backend_version[] = DDPRUN_LAZY_VERSION;                                      \
  __attribute__((visibility("default"))) ::ddprun::CommBackend* ddprun_##name##_backend_make(const ::ddprun::Host&); \
  }                                                                                                                  \
  ::ddprun::CommBackend* ddprun_##name##_backend_make(const ::ddprun::Host& host) {                                  \
    return new Class(host);                                                                                          \
  }                                                                                                                  \
  static_assert(true)

// The Library of such a backend, for its plugin; `info` is a variable of the plugin.
#define DDPRUN_LAZY_LIBRARY(name, info, cure)                                                                          \
  ::ddprun::lazy::Library {                                                                                            \
    &info, "libddprun_" #name "_backend.so", "ddprun_" #name "_backend_make", "ddprun_" #name "_backend_version", cure \
  }
