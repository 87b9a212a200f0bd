// Where the vectors of a collective lie, in the host's memory or in a GPU's, and what is done with them there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ddprun/comm_backend.hpp"

namespace ddprun::ucx_backend {

// to = a op b; with Op::avg, and for ranks > 1, divided by that then.
struct Reduction {
  DType dtype;
  Op op;
  int ranks = 1;
};

// Everything is done when a function returns. One thread.
class MemorySpace {
 public:
  // Segments that are expected ahead of the one that is being reduced.
  static constexpr std::size_t kWindow = 4;

  virtual ~MemorySpace() = default;
  // The most bytes of a vector that go at a time: equal on all ranks.
  virtual std::size_t segment_bytes() const noexcept = 0;
  // Memory for kWindow segments, where arrives what is to be reduced.
  virtual std::byte* slots() noexcept = 0;
  // Vectors of `count` elements at any address that suits an element. `to` may be a or b, but must not overlap them
  // otherwise. The results are those of reduction/reduce.hpp, bit for bit, but for which NaN a NaN is.
  virtual void reduce(const Reduction& how, void* to, const void* a, const void* b, std::size_t count) = 0;
  // Not overlapping.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
};

}  // namespace ddprun::ucx_backend
