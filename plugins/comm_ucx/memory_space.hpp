// Where a collective's vectors are (host or GPU memory), and how they are reduced and copied there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ddprun/collective.hpp"

namespace ddprun::ucx_backend {

// to = a op b; for Op::avg and ranks > 1, then divided by ranks.
struct Reduction {
  DType dtype;
  Op op;
  int ranks = 1;
};

// Each function returns when its work is done. One thread.
class MemorySpace {
 public:
  // The number of segments that have slots: those that are expected ahead of the one that is being reduced.
  static constexpr std::size_t kWindow = 4;

  virtual ~MemorySpace() = default;
  // The most bytes of a vector in one message: equal on all ranks.
  virtual std::size_t segment_bytes() const noexcept = 0;
  // Memory for kWindow received segments, before they are reduced.
  virtual std::byte* slots() noexcept = 0;
  // Vectors of `count` elements, at any address in host memory, else at one that suits an element. `to` may be a or b,
  // but must not overlap them otherwise. The results are those of reduction/reduce.hpp, bit for bit, except for the
  // bits of a NaN.
  virtual void reduce(const Reduction& how, void* to, const void* a, const void* b, std::size_t count) = 0;
  // The vectors must not overlap.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
};

// Host memory, reduced by the processor.
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
