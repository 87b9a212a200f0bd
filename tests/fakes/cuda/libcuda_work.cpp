// The part of libcuda.so.1 that computes: contexts, memory, streams and kernels, on the GPU of gpu.hpp. Work on
// a stream runs when the host waits for it, so a missing wait gives a wrong result.
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "gpu.hpp"
#include "kernels.hpp"
#include "machine.hpp"

namespace {

namespace gpu = ddprun::fake_gpu;

constexpr int kNoMemory = 2, kInvalidContext = 201, kNoBinary = 209, kNotFound = 500, kNotReady = 600,
              kIllegalAddress = 700;

// DDPRUN_FAKE_CU_FAILS=<function>:<CUresult>: this function fails. cuStreamQuery:600 is a GPU that hangs.
int failure_of(const char* function) {
  const char* const fails = std::getenv("DDPRUN_FAKE_CU_FAILS");
  const std::size_t length = std::strlen(function);
  return fails != nullptr && std::strncmp(fails, function, length) == 0 && fails[length] == ':'
             ? std::atoi(fails + length + 1)
             : 0;
}

// The primary context of device n is the number n + 1.
struct Entered {
  void* context;
  int device_before;  // the CUDA runtime's
};
thread_local std::vector<Entered> entered;
std::mutex mutex;
int retained = 0;  // number of retain calls for primary contexts

int device_of(void* context) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(context)) - 1;
}

gpu::Stream stream_of(void* stream) {
  return gpu::stream_of(static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(stream)), gpu::current_device());
}

// CUDA's result for a call that needs a current context.
template <class Work>
int on_device(const char* function, Work work) {
  if (entered.empty()) return kInvalidContext;
  if (const int failure = failure_of(function); failure != 0) return failure;
  try {
    return work();
  } catch (const gpu::Race&) {
    return kIllegalAddress;
  }
}

char some_module, some_kernel;

}  // namespace

extern "C" {

// For tests: whether this process uses a GPU but this thread has no current one.
int ddprun_fake_cuda_without_current() {
  const std::lock_guard lock(mutex);
  return retained > 0 && entered.empty() ? 1 : 0;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  const std::lock_guard lock(mutex);
  ++retained;
  *context = reinterpret_cast<void*>(static_cast<std::intptr_t>(device) + 1);
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  const std::lock_guard lock(mutex);
  --retained;
  return 0;
}
int cuCtxPushCurrent_v2(void* context) {
  entered.push_back({context, gpu::current_device()});
  gpu::set_current_device(device_of(context));
  return 0;
}
int cuCtxPopCurrent_v2(void** context) {
  if (entered.empty()) return kInvalidContext;
  *context = entered.back().context;
  gpu::set_current_device(entered.back().device_before);
  entered.pop_back();
  return 0;
}

int cuMemAlloc_v2(unsigned long long* address, std::size_t bytes) {
  return on_device("cuMemAlloc", [&] {
    if (bytes > ddprun::testing::fake_memory(gpu::current_device())) return kNoMemory;
    void* const memory = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
    gpu::allocated(memory, bytes, stream_of(nullptr));
    *address = reinterpret_cast<unsigned long long>(memory);
    return 0;
  });
}
// Waits for the device, as CUDA does.
int cuMemFree_v2(unsigned long long address) {
  return on_device("cuMemFree", [&] {
    void* const memory = reinterpret_cast<void*>(address);
    gpu::synchronize_device(gpu::current_device());
    gpu::freed(memory, [memory] { std::free(memory); });
    return 0;
  });
}
int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, std::size_t bytes, void* on) {
  return on_device("cuMemcpyDtoDAsync", [&] {
    const gpu::Stream stream = stream_of(on);
    void* const into = reinterpret_cast<void*>(to);
    const void* const source = reinterpret_cast<const void*>(from);
    gpu::begin(stream);
    gpu::access(stream, source, bytes, false, "cuMemcpyDtoD");
    gpu::access(stream, into, bytes, true, "cuMemcpyDtoD");
    gpu::when_known(stream, [=] { std::memcpy(into, source, bytes); });
    return 0;
  });
}

// Numbers that are used neither by the CUDA runtime nor by Torch.
int cuStreamCreate(void** stream, unsigned) {
  return on_device("cuStreamCreate", [&] {
    static int streams = 0;
    const std::lock_guard lock(mutex);
    const int number = (gpu::current_device() + 1) * 1000 + 300 + streams++ % 200;
    *stream = reinterpret_cast<void*>(static_cast<std::intptr_t>(number));
    return 0;
  });
}
int cuStreamDestroy_v2(void*) {
  return entered.empty() ? kInvalidContext : 0;
}
int cuStreamQuery(void* stream) {
  return on_device("cuStreamQuery", [&] { return gpu::is_done(stream_of(stream)) ? 0 : kNotReady; });
}

// The output of the fake NVRTC for this GPU's architecture (libcuda.cpp).
int cuModuleLoadData(void** module, const void* image) {
  return on_device("cuModuleLoadData", [&] {
    *module = &some_module;
    return std::strcmp(static_cast<const char*>(image), "kernel.cu for sm_90") == 0 ? 0 : kNoBinary;
  });
}
int cuModuleUnload(void*) {
  return entered.empty() ? kInvalidContext : 0;
}
int cuModuleGetFunction(void** function, void*, const char* name) {
  return on_device("cuModuleGetFunction", [&] {
    *function = &some_kernel;
    return std::strcmp(name, "ddprun_reduce") == 0 ? 0 : kNotFound;
  });
}
int cuLaunchKernel(void*, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned, void* on,
                   void** parameters, void**) {
  return on_device("cuLaunchKernel", [&] {
    const gpu::Stream stream = stream_of(on);
    const auto call = ddprun::testing::ReduceArguments::of(parameters);
    gpu::begin(stream);
    gpu::access(stream, call.a, call.bytes(), false, "the kernel");
    gpu::access(stream, call.b, call.bytes(), false, "the kernel");
    gpu::access(stream, call.to, call.bytes(), true, "the kernel");
    gpu::note(gpu::name_of(stream) + " the kernel reduces " + std::to_string(call.bytes()) + " bytes");
    gpu::when_known(stream, [=] { ddprun::testing::run_reduce(blocks, threads, call); });
    return 0;
  });
}
}
