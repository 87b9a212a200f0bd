// A communicator that comes from a library beside its plugin. The plugin is loaded to be asked what it can, by
// everybody; what the second library brings (a transport, a device's runtime) only a rank that communicates pays for.
#pragma once

#include <dlfcn.h>

#include <filesystem>
#include <memory>
#include <string>

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::lazy {

// What the library exports, under a name of its own: joins, as a communicator's constructor does. Collective; the
// caller owns the result. Throws Failure.
using Make = Communicator*(const Host&);

struct Library {
  const void* plugin;  // anything that lies in the plugin: the library is in its folder
  const char* file;    // libddprun_<name>_backend.so
  const char* make;    // the name of its Make
  const char* cure;    // what to do where it, or what it needs, is missing
};

// Loads the library and joins. Never unloaded: what transports start outlives a communicator. Throws
// Failure(DDPRUN_UNSUPPORTED) with the loader's words where it cannot be loaded.
inline std::unique_ptr<Communicator> join(const Library& library, const Host& host) {
  Dl_info plugin = {};
  dladdr(library.plugin, &plugin);
  const auto path = std::filesystem::path(plugin.dli_fname).replace_filename(library.file);
  void* const loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const make = loaded == nullptr ? nullptr : dlsym(loaded, library.make);
  if (make == nullptr) {
    throw Failure(DDPRUN_UNSUPPORTED, std::string("a library is missing: ") + dlerror() +
                                          "; it was there when the plugin was built: " + library.cure);
  }
  return std::unique_ptr<Communicator>(reinterpret_cast<Make*>(make)(host));
}

// Passes everything on to it. A plugin derives from this and says which library.
class Forwarder : public Communicator {
 public:
  Request& allreduce(const ddprun_collective& call) final { return inner_->allreduce(call); }
  Request& broadcast(const ddprun_collective& call) final { return inner_->broadcast(call); }
  Request& allgather(const ddprun_collective& call) final { return inner_->allgather(call); }
  Request& reduce_scatter(const ddprun_collective& call) final { return inner_->reduce_scatter(call); }
  Request& barrier() final { return inner_->barrier(); }
  void abort() noexcept final { inner_->abort(); }
  bool test(Request& request) final { return inner_->test(request); }
  void wait(Request& request, std::chrono::milliseconds timeout) final { inner_->wait(request, timeout); }
  void* alloc(uint64_t bytes) final { return inner_->alloc(bytes); }
  void free(void* memory) noexcept final { inner_->free(memory); }

 protected:
  Forwarder(const Library& library, const Host& host) : inner_(join(library, host)) {}

 private:
  const std::unique_ptr<Communicator> inner_;
};

}  // namespace ddprun::lazy
