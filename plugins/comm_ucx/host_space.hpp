// Host memory, reduced by the processor.
#pragma once

#include <memory>

#include "memory_space.hpp"

namespace ddprun::ucx_backend {

class HostSpace final : public MemorySpace {
 public:
  // by_memory: all ranks communicate through shared memory.
  explicit HostSpace(bool by_memory);
  std::size_t segment_bytes() const noexcept override { return segment_bytes_; }
  std::byte* slots() noexcept override { return slots_.get(); }
  void reduce(const Reduction& how, void* to, const void* a, const void* b, std::size_t count) override;
  void copy(void* to, const void* from, std::size_t bytes) override;

 private:
  const std::size_t segment_bytes_;
  const std::unique_ptr<std::byte[]> slots_;
};

}  // namespace ddprun::ucx_backend
