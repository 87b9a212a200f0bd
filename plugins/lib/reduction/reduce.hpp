// plugins/lib/reduction: the arithmetic of the communication backends, for each dtype and op of the plugin contract.
// Uses no transport and no threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ddprun/collective.hpp"

namespace ddprun::reduction {

// For all functions here:
//   - Vectors have `count` elements and may lie at any address.
//   - Integers wrap modulo 2^n. float16 and bfloat16 are computed in float32 and rounded to nearest even.
//   - min and max give a NaN if either operand is one, as sum and product do.
//   - Results are equal bit for bit on every processor, except for the bits of a NaN.
//   - Op::avg reduces as Op::sum; divide() follows on the complete sum.
//   - Any thread; nothing is thrown or allocated. dtype and op are valid: ddprun has checked them.

// to[i] = a[i] op b[i]. `to` may be a or b, but must not overlap them otherwise.
using Reduce = void (*)(void* to, const void* a, const void* b, std::size_t count);
Reduce reduce_function(DType dtype, Op op);

// to[t][i] = from[0][i] op from[1][i] op ..., for every t < to_count; from_count >= 1. Neighbours first, in a binary
// tree: ((0 op 1) op (2 op 3)) op ..., as ddprun_comm_algorithm::canonical_order. float16 and bfloat16 are rounded
// once, at the end. Vectors of `to` may be vectors of `from`, but must not overlap them otherwise.
void reduce_all(void* const* to, int to_count, const void* const* from, int from_count, DType dtype, Op op,
                std::size_t count);

// Copies. Not memcpy: some versions of glibc's use "rep movsb", which is several times slower on some processors if
// source and target have the same offset in a page, as those in shared memory often have.
inline void move_bytes(void* to, const void* from, std::size_t bytes) {
  reduce_all(&to, 1, &from, 1, DType::uint8, Op::sum, bytes);
}

// values[i] /= ranks, for the floating dtypes.
void divide(void* values, DType dtype, std::size_t count, int ranks);

}  // namespace ddprun::reduction
