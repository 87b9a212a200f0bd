// The data of a measured collective, and the count of wrong elements in its result. Every element is a function of the
// call, the rank and the index, so that a result that is wrong, shifted, another rank's, or left from an earlier call
// is seen.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ddprun/comm_backend.hpp"

namespace ddprun::comm {

// Each call has its own `seed`. Floating values are small integers (for product: powers of two), so that sum, min, max
// and product are exact in every order and dtype. An average may be off by its roundings (Higham, Accuracy and Stability
// of Numerical Algorithms, 2nd ed., lemma 3.1). Integers use all their bits. Any thread.
struct Pattern {
  DType dtype = DType::float32;
  Op op = Op::sum;
  int ranks = 1;
  uint64_t seed = 0;
};

// Elements first, first + 1, ..., first + count - 1 of `rank` into data.
void fill(const Pattern& pattern, int rank, std::size_t first, std::size_t count, void* data);

// How many of the elements in data are not those of fill() with the same arguments.
uint64_t wrong_copies(const Pattern& pattern, int rank, std::size_t first, std::size_t count, const void* data);

// How many are not the reduction of those elements over all ranks.
uint64_t wrong_reductions(const Pattern& pattern, std::size_t first, std::size_t count, const void* data);

}  // namespace ddprun::comm
