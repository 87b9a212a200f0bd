// The arithmetic of the conformance suite: what each rank sends, the expected result, and its tolerance. It is written
// for certainty, not for speed, only from the contract (ddprun/plugin/comm_plugin.h). It shares no code with any
// backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ddprun/collective.hpp"

namespace ddprun::conformance {

// A value of any dtype: `real` for floating types (exact for all of them), `bits` for integers, sign-extended to 64
// bits.
struct Value {
  long double real = 0;
  uint64_t bits = 0;
};

// Reads and writes element `index` of a buffer. store() needs a real that the dtype represents exactly.
Value load(DType dtype, const void* data, std::size_t index);
void store(DType dtype, const Value& value, void* data, std::size_t index);
// "3.25" or "-7"
std::string to_text(DType dtype, const Value& value);

// Distance from 1 to the next larger number, halved: the largest relative error of one rounding. 0 for integers.
long double unit_roundoff(DType dtype);

// Element `index` that `rank` contributes to a reduction. A pure function, so that every rank can compute what every
// other rank sends. Integers are random bits of full range. Floating types alternate:
//   even index  small integers (for product: powers of two), whose reduction is exact in any order and any dtype;
//   odd index   random significands of full length (for product: around 1), which show how the backend rounds.
// `seed` separates the collectives of one test.
Value contribution(DType dtype, Op op, uint64_t seed, int rank, std::size_t index);

// contribution() of elements first, first + 1, ..., first + count - 1 into data.
void fill(DType dtype, Op op, uint64_t seed, int rank, std::size_t first, std::size_t count, void* data);

// The valid results of a reduction over `size` ranks: |got - value| <= bound, or exactly the bits for integers.
//
// The bound. Let u be the unit roundoff and g(k) = k*u / (1 - k*u) (Higham, Accuracy and Stability of Numerical
// Algorithms, 2nd ed., lemma 3.1). n numbers summed in any order by n - 1 rounded additions are within g(n - 1) *
// sum|x| of their sum; a product is within g(n - 1) * |product|. One more rounding is allowed for a conversion from a
// wider accumulator, and two more for avg, which divides or multiplies by a rounded 1/n; avg may also lose n times half
// the smallest subnormal to underflow. min, max, integers, one rank, and sums and products of the exact elements: no
// error at all.
struct Expected {
  Value value;
  long double bound = 0;
};
Expected reduce(DType dtype, Op op, uint64_t seed, int size, std::size_t index);

// True if `expected` allows `got`. NaN is never allowed.
bool accepts(DType dtype, const Expected& expected, const Value& got);

}  // namespace ddprun::conformance
