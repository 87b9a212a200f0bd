#include "train/device/device_graph.hpp"

#include <dlfcn.h>

#include <string>

#include "ddprun/error.hpp"

namespace ddprun::train {
namespace {

constexpr const char* kGraphLibrary = "libddprun_cuda_graph.so";
constexpr const char* kEntry = "ddprun_new_cuda_graph";

using NewGraph = DeviceGraph*();

NewGraph* entry() {
  // Never unloaded. Its symbols are resolved in libtorch_cuda.so.
  void* const library = dlopen(kGraphLibrary, RTLD_NOW | RTLD_LOCAL);
  void* const found = library == nullptr ? nullptr : dlsym(library, kEntry);
  if (found != nullptr) return reinterpret_cast<NewGraph*>(found);
  const char* const why = dlerror();
  throw Error(ExitCode::plugin, std::string("this ddprun has no CUDA graphs: ") +
                                    (why == nullptr ? kGraphLibrary : why) +
                                    "; build it where CUDA's headers are, which ./ddprun installs on a machine with "
                                    "NVIDIA's driver, or set it to false");
}

}  // namespace

std::unique_ptr<DeviceGraph> make_device_graph() {
  static NewGraph* const make = entry();
  return std::unique_ptr<DeviceGraph>(make());
}

}  // namespace ddprun::train
