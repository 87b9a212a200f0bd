#include "cuda/library.hpp"

#include <dlfcn.h>

#include "ddprun/error.hpp"

namespace ddprun::cuda {

Library::Library(const char* name) : name_(name), handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) {
    const char* const words = dlerror();
    why_ = words != nullptr ? words : name_ + ": cannot be opened";
  }
}

void* Library::symbol(const char* name) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, name);
}

void* Library::required(const char* name) const {
  void* const address = symbol(name);
  if (address == nullptr) {
    throw Error(ExitCode::plugin, name_ + " has no " + name + ": it is too old, or not NVIDIA's");
  }
  return address;
}

}  // namespace ddprun::cuda
