// A GPU's memory, and a kernel of ours on a stream of its own.
#pragma once

#include "gpu.hpp"
#include "memory_space.hpp"
#include "messages.hpp"

namespace ddprun::ucx_backend {

class GpuSpace final : public MemorySpace {
 public:
  // Both outlive it. The GPU is current on the thread that calls anything here. What takes long is waited for as the
  // messages wait: they move on meanwhile, and the wait ends at the deadline, after an abort and with a failure of a
  // peer; the GPU may then still be at it, until this ends. Throws CommError, as every function does.
  GpuSpace(const Gpu& gpu, Messages& messages);
  ~GpuSpace() override;
  GpuSpace(const GpuSpace&) = delete;
  GpuSpace& operator=(const GpuSpace&) = delete;

  std::size_t segment_bytes() const noexcept override;
  std::byte* slots() noexcept override;
  void reduce(const Reduction& how, void* to, const void* a, const void* b, std::size_t count) override;
  void copy(void* to, const void* from, std::size_t bytes) override;

 private:
  void free() noexcept;
  // Until the stream has nothing left to do.
  void finish(const char* what);

  const Gpu& gpu_;
  Messages& messages_;
  void* module_ = nullptr;
  void* kernel_ = nullptr;
  void* stream_ = nullptr;
  CudaAddress slots_ = 0;
};

}  // namespace ddprun::ucx_backend
