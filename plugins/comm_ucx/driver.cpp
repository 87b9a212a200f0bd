#include "driver.hpp"

#include <dlfcn.h>

#include <string>

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::ucx_backend {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";

template <class Function>
void bind(void* library, Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) {
    throw CommError(CommStatus::unsupported, std::string("the NVIDIA driver's ") + kLibrary + " has no " + name +
                                                 ": it is too old, or not NVIDIA's");
  }
}

Driver load() {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw CommError(CommStatus::unsupported, std::string("no NVIDIA driver: ") + dlerror());
  Driver driver;
  bind(library, driver.init, "cuInit");
  bind(library, driver.device, "cuDeviceGet");
  bind(library, driver.attribute, "cuDeviceGetAttribute");
  bind(library, driver.retain, "cuDevicePrimaryCtxRetain");
  bind(library, driver.release, "cuDevicePrimaryCtxRelease_v2");
  bind(library, driver.push, "cuCtxPushCurrent_v2");
  bind(library, driver.pop, "cuCtxPopCurrent_v2");
  bind(library, driver.allocate, "cuMemAlloc_v2");
  bind(library, driver.free, "cuMemFree_v2");
  bind(library, driver.create_stream, "cuStreamCreate");
  bind(library, driver.destroy_stream, "cuStreamDestroy_v2");
  bind(library, driver.query, "cuStreamQuery");
  bind(library, driver.copy, "cuMemcpyDtoDAsync_v2");
  bind(library, driver.load, "cuModuleLoadData");
  bind(library, driver.unload, "cuModuleUnload");
  bind(library, driver.function, "cuModuleGetFunction");
  bind(library, driver.launch, "cuLaunchKernel");
  bind(library, driver.words, "cuGetErrorString");
  return driver;
}

std::string error_message(const Driver& driver, CudaResult result) {
  const char* words = nullptr;
  driver.words(result, &words);
  return (words != nullptr ? words : "unknown error") + std::string(" (") + std::to_string(result) + ")";
}

Driver initialised() {
  const Driver driver = load();
  if (const CudaResult result = driver.init(0); result != kCudaSuccess) {
    throw CommError(CommStatus::unsupported, "the NVIDIA driver cannot start: " + error_message(driver, result));
  }
  return driver;
}

}  // namespace

const Driver& driver() {
  static const Driver driver = initialised();
  return driver;
}

void check(CudaResult result, const char* what) {
  if (result == kCudaSuccess) return;
  throw CommError(result == kCudaNoMemory ? CommStatus::no_memory : CommStatus::internal,
                  std::string("CUDA: ") + what + ": " + error_message(driver(), result));
}

}  // namespace ddprun::ucx_backend
