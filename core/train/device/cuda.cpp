#include "train/device/cuda.hpp"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <mutex>

#include "cuda/driver.hpp"
#include "ddprun/error.hpp"

namespace ddprun::train {
namespace {

constexpr const char* kLibrary = "libtorch_cuda.so";

// dlopen searches LD_LIBRARY_PATH, then the folder of the libtorch_cpu.so that this program is linked with. Loaded
// globally, because other LibTorch libraries look up its symbols.
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
    // LibTorch caches the first answer for the rest of the process.
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
  make_current(chosen);
  return chosen;
}

void make_current(torch::Device device) {
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
}

std::string device_text(torch::Device device) {
  if (device.is_cpu()) return "cpu";
  return device.str() + " (" + cuda::gpus().at(static_cast<std::size_t>(device.index())).name + ")";
}

std::map<std::string, std::string> cuda_environment() {
  std::map<std::string, std::string> found{{"cuda.driver", cuda::driver_version()}};
  const auto& context = torch::globalContext();
  if (context.hasCUDART()) found["cuda.runtime"] = std::to_string(context.versionCUDART());
  if (context.hasCuDNN()) found["cudnn"] = std::to_string(context.versionCuDNN());
  for (std::size_t number = 0; number < cuda::gpus().size(); ++number) {
    found["gpu." + std::to_string(number)] = cuda::gpus()[number].name;
  }
  return found;
}

std::string refused_tensor(const std::string& text) {
  // "... you tried to allocate 1644167168 bytes. ..." is all that the CPU's allocator says of use.
  const std::string tried = "you tried to allocate ";
  const auto at = text.find(tried);
  if (at == std::string::npos) return "";
  return "out of memory: a tensor of " + text.substr(at + tried.size(), text.find(" bytes", at) - at - tried.size()) +
         " bytes cannot be allocated";
}

std::string error_message(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) {
    const std::string free = " is free.";
    const auto end = text.find(free);
    return text.substr(0, end == std::string::npos ? text.find('\n') : end + free.size()) +
           " Try a smaller data.batch_size, a larger train.accumulate, or train.amp = \"bf16\"";
  }
  if (const std::string refused = refused_tensor(text); !refused.empty()) {
    return refused + ". Try a smaller data.batch_size, a larger train.accumulate, or fewer ranks per host";
  }
  // Torch advises functions of Python.
  if (const auto end = text.find(" does not have a deterministic implementation"); end != std::string::npos) {
    return text.substr(0, end) +
           " has no deterministic kernel: change the model, or do not ask for such kernels (train.deterministic = "
           "false)";
  }
  // It goes on with a list of all kernels.
  if (text.starts_with("Could not run '")) return text.substr(0, text.find(". "));
  if (!text.starts_with("CUDA error")) return text;
  const std::string line = text.substr(0, text.find('\n'));
  // This is not the allocator's error but the driver's: for a context, a library's workspace or page-locked memory.
  return line != "CUDA error: out of memory"
             ? line
             : line + ". Try a smaller data.batch_size or fewer ranks per GPU, and data.pin_memory = false";
}

namespace {

// Calls `work` with the allocator of the device's type if this LibTorch has that interface. `auto` delays the check
// until instantiation.
void with_allocator(const auto& type, auto work) {
  if constexpr (requires { getDeviceAllocator(type); }) work(*getDeviceAllocator(type));
}

}  // namespace

GpuMemory peak_memory(torch::Device gpu) {
  GpuMemory peak;
  with_allocator(gpu.type(), [&](auto& allocator) {
    constexpr std::size_t all = 0;  // index of the total over all memory pools
    const auto stats = allocator.getDeviceStats(gpu.index());
    peak = {stats.allocated_bytes[all].peak, stats.reserved_bytes[all].peak};
  });
  return peak;
}

void reset_peak_memory(torch::Device gpu) {
  with_allocator(gpu.type(), [&](auto& allocator) { allocator.resetPeakStats(gpu.index()); });
}

}  // namespace ddprun::train
