#include "gpu_space.hpp"

#include <algorithm>

namespace ddprun::ucx_backend {
namespace {

constexpr unsigned kThreads = 256;      // per block
constexpr unsigned kMostBlocks = 1024;  // fills a large GPU; each thread then reduces several elements

CudaAddress address_of(const void* memory) {
  return reinterpret_cast<CudaAddress>(memory);
}

}  // namespace

GpuSpace::GpuSpace(const Gpu& gpu, Messages& messages) : gpu_(gpu), messages_(messages) {
  const std::string& image = compiled_kernel(gpu.architecture());
  try {
    check(driver().load(&module_, image.data()), "loading the kernel");
    check(driver().function(&kernel_, module_, kKernel), "finding the kernel");
    check(driver().create_stream(&stream_, kNonBlocking), "a stream");
    check(driver().allocate(&slots_, kWindow * kGpuSegmentBytes), "memory for received segments");
  } catch (...) {
    free();
    throw;
  }
}

GpuSpace::~GpuSpace() {
  free();
}

// Errors here are not reported.
void GpuSpace::free() noexcept {
  if (slots_ != 0) driver().free(slots_);
  if (stream_ != nullptr) driver().destroy_stream(stream_);
  if (module_ != nullptr) driver().unload(module_);
}

void GpuSpace::reduce(const Reduction& how, void* to, const void* a, const void* b, std::size_t count) {
  if (count == 0) return;
  uint64_t elements = count;
  auto dtype = static_cast<int32_t>(how.dtype), op = static_cast<int32_t>(how.op),
       ranks = static_cast<int32_t>(how.ranks);
  void* parameters[] = {&to, &a, &b, &elements, &dtype, &op, &ranks};  // of the types that kernel.cu has
  const auto blocks = static_cast<unsigned>(std::min<std::size_t>((count + kThreads - 1) / kThreads, kMostBlocks));
  check(driver().launch(kernel_, blocks, 1, 1, kThreads, 1, 1, 0, stream_, parameters, nullptr), "starting the kernel");
  finish("reducing");
}

void GpuSpace::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  check(driver().copy(address_of(to), address_of(from), bytes, stream_), "a copy");
  finish("a copy");
}

void GpuSpace::finish(const char* what) {
  CudaResult state = kCudaNotReady;
  messages_.wait_for([&] { return (state = driver().query(stream_)) != kCudaNotReady; },
                     std::string("the GPU to end ") + what);
  check(state, what);
}

}  // namespace ddprun::ucx_backend
