#include "train/cuda.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <mutex>

#include "base/error.hpp"
#include "cuda/driver.hpp"

namespace ddprun::train {
namespace {

constexpr const char* kLibrary = "libtorch_cuda.so";

// Looked for where LD_LIBRARY_PATH says, then beside the libtorch_cpu.so that this program is linked with. Other
// libraries of LibTorch look its symbols up in it, hence global.
void open_library() {
  if (dlopen(kLibrary, RTLD_NOW | RTLD_GLOBAL) != nullptr) return;
  const char* const why = dlerror();
  throw Error(ExitCode::plugin, std::string("this LibTorch has no CUDA: ") + (why == nullptr ? kLibrary : why) +
                                    "; on a machine with NVIDIA's driver ./ddprun installs one that has, or set "
                                    "DDPRUN_TORCH_DIR to one and build again");
}

}  // namespace

void load_cuda() {
  static std::once_flag once;
  std::call_once(once, [] {
    cuda::gpus();
    open_library();
    // LibTorch keeps the first answer: here for good, or never.
    if (!torch::globalContext().hasCUDA()) {
      throw Error(ExitCode::plugin, std::string(kLibrary) +
                                        " was loaded, and LibTorch still has no CUDA: it was asked "
                                        "for it before, or is of another version");
    }
  });
}

torch::Device choose_device(const std::string& device, int index) {
  if (device == "cpu") return torch::kCPU;
  load_cuda();
  const torch::Device chosen(torch::kCUDA, static_cast<c10::DeviceIndex>(index));
  c10::impl::VirtualGuardImpl(torch::kCUDA).setDevice(chosen);
  return chosen;
}

std::string device_text(torch::Device device) {
  if (device.is_cpu()) return "cpu";
  return device.str() + " (" + cuda::gpus().at(static_cast<std::size_t>(device.index())).name + ")";
}

}  // namespace ddprun::train
