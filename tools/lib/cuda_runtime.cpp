#include "tools/lib/cuda_runtime.hpp"

#include <string>

#include "cuda/driver.hpp"
#include "cuda/library.hpp"
#include "ddprun/error.hpp"

namespace ddprun::tools {
namespace {

// As driver_types.h has them.
constexpr int kRuntimeSuccess = 0;
constexpr int kToDevice = 1;          // cudaMemcpyHostToDevice
constexpr int kToHost = 2;            // cudaMemcpyDeviceToHost
constexpr unsigned kNonBlocking = 1;  // cudaStreamNonBlocking

cuda::Library open_runtime() {
  const cuda::Library here("libcudart.so.13");
  if (here.found() || std::string(DDPRUN_CUDART).empty()) return here;
  return cuda::Library(DDPRUN_CUDART);
}

}  // namespace

struct CudaRuntime::Functions {
  int (*set_device)(int) = nullptr;
  int (*malloc)(void**, std::size_t) = nullptr;
  int (*free)(void*) = nullptr;
  int (*memset)(void*, int, std::size_t) = nullptr;
  int (*memcpy)(void*, const void*, std::size_t, int) = nullptr;
  int (*create_stream)(void**, unsigned) = nullptr;
  int (*destroy_stream)(void*) = nullptr;
  int (*synchronize)(void*) = nullptr;
  int (*last_error)() = nullptr;
  const char* (*words)(int) = nullptr;
};

std::shared_ptr<const CudaRuntime::Functions> CudaRuntime::load() {
  const cuda::Library library = open_runtime();
  if (!library.found()) {
    throw Error(ExitCode::plugin,
                "no CUDA runtime: " + library.why() + ": ./ddprun installs one, or name its folder in LD_LIBRARY_PATH");
  }
  auto functions = std::make_shared<Functions>();
  library.bind(functions->set_device, "cudaSetDevice");
  library.bind(functions->malloc, "cudaMalloc");
  library.bind(functions->free, "cudaFree");
  library.bind(functions->memset, "cudaMemset");
  library.bind(functions->memcpy, "cudaMemcpy");
  library.bind(functions->create_stream, "cudaStreamCreateWithFlags");
  library.bind(functions->destroy_stream, "cudaStreamDestroy");
  library.bind(functions->synchronize, "cudaStreamSynchronize");
  library.bind(functions->last_error, "cudaGetLastError");
  library.bind(functions->words, "cudaGetErrorString");
  return functions;
}

CudaRuntime::CudaRuntime(int device) : device_(device) {
  const std::size_t count = cuda::gpus().size();
  if (device < 0 || static_cast<std::size_t>(device) >= count) {
    throw Error(ExitCode::plugin, "no GPU " + std::to_string(device) + ": this machine has " + std::to_string(count) +
                                      ", counted from 0");
  }
  functions_ = load();
  make_current();
}

// Clears CUDA's last error: otherwise the next call in this thread would report it again.
void CudaRuntime::check(const char* what, int result) const {
  if (result == kRuntimeSuccess) return;
  functions_->last_error();
  throw Error(ExitCode::failure, "CUDA: GPU " + std::to_string(device_) + ": " + what + ": " +
                                     functions_->words(result) + " (" + std::to_string(result) + ")");
}

void CudaRuntime::make_current() const {
  check("making it current", functions_->set_device(device_));
}

std::shared_ptr<void> CudaRuntime::allocate(std::size_t bytes) const {
  void* memory = nullptr;
  const std::string what = "memory of " + std::to_string(bytes) + " bytes";
  check(what.c_str(), functions_->malloc(&memory, bytes > 0 ? bytes : 1));
  return {memory, [functions = functions_](void* one) { functions->free(one); }};
}

void CudaRuntime::clear(void* memory, std::size_t bytes) const {
  check("clearing memory", functions_->memset(memory, 0, bytes));
  check("clearing memory", functions_->synchronize(nullptr));
}

void CudaRuntime::to_device(void* memory, const void* host, std::size_t bytes) const {
  check("a copy to the GPU", functions_->memcpy(memory, host, bytes, kToDevice));
  check("a copy to the GPU", functions_->synchronize(nullptr));  // small copies return before they are complete
}

void CudaRuntime::to_host(void* host, const void* memory, std::size_t bytes) const {
  check("a copy from the GPU", functions_->memcpy(host, memory, bytes, kToHost));
}

std::shared_ptr<void> CudaRuntime::make_stream() const {
  void* stream = nullptr;
  check("a stream", functions_->create_stream(&stream, kNonBlocking));
  return {stream, [functions = functions_](void* one) { functions->destroy_stream(one); }};
}

void CudaRuntime::synchronize(void* stream) const {
  check("waiting for a stream", functions_->synchronize(stream));
}

}  // namespace ddprun::tools
