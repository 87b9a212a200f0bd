// GPU memory, and our kernel on a separate stream.
#pragma once

#include "gpu.hpp"
#include "memory_space.hpp"
#include "messages.hpp"

namespace ddprun::ucx_backend {

class GpuSpace final : public MemorySpace {
 public:
  // Both outlive it. The calling thread's current device must be the GPU. While a call waits for the GPU, messages move
  // on; the wait ends at the deadline, after an abort and if a peer fails, and the GPU may then continue until the
  // destructor. All functions throw CommError.
  GpuSpace(const Gpu& gpu, Messages& messages);
  ~GpuSpace() override;
  GpuSpace(const GpuSpace&) = delete;
  GpuSpace& operator=(const GpuSpace&) = delete;

  std::size_t segment_bytes() const noexcept override { return kGpuSegmentBytes; }
  std::byte* slots() noexcept override { return reinterpret_cast<std::byte*>(slots_); }
  void reduce(const Reduction& how, void* to, const void* a, const void* b, std::size_t count) override;
  void copy(void* to, const void* from, std::size_t bytes) override;

 private:
  // More than on the host: launching a kernel and waiting for it costs some ten microseconds.
  static constexpr std::size_t kGpuSegmentBytes = 4 << 20;

  void free() noexcept;
  // Waits until the stream has nothing left to do.
  void finish(const char* what);

  const Gpu& gpu_;
  Messages& messages_;
  void* module_ = nullptr;
  void* kernel_ = nullptr;
  void* stream_ = nullptr;
  CudaAddress slots_ = 0;
};

}  // namespace ddprun::ucx_backend
