// The two 16-bit floating types as bit patterns, to and from float32. Branch-free, so that the same code serves a
// number and a vector of numbers. The results do not depend on how the processor treats denormal float32 numbers.
#pragma once

#include <bit>
#include <cstdint>

namespace ddprun::reduction {

// IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits.
struct Float16 {
  uint16_t pattern;
};
// The upper half of a float32: 1 sign, 8 exponent, 7 fraction bits.
struct BFloat16 {
  uint16_t pattern;
};

// In these three functions, Bits is uint32_t or a vector of it, and Floats is float or a vector of as many. A bfloat16
// is the upper half of its float32. This rounds to nearest, ties to even, into the upper half of the result; the lower
// half is meaningless. A NaN stays a NaN (quiet, with its upper fraction bits).
template <class Bits, class Floats>
inline Bits rounded_to_bfloat16(Floats value) {
  const Bits bits = std::bit_cast<Bits>(value);
  const Bits rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return value == value ? rounded : bits | 0x00400000u;
}

// Patterns are in the lower half, the upper half is 0.
template <class Floats, class Bits>
inline Floats floats_of_float16(Bits pattern) {
  const Bits sign = (pattern & 0x8000u) << 16;
  const Bits magnitude = (pattern & 0x7fffu) << 13;
  // Denormal half numbers are fractions of 2^-14. In others the exponent's bias becomes 127 (from 15), or all ones.
  const Bits denormal = std::bit_cast<Bits>(std::bit_cast<Floats>(magnitude + 0x38800000u) - 0x1p-14f);
  const Bits normal = magnitude + ((127u - 15u) << 23);
  const Bits special = magnitude | 0x7f800000u;
  const Bits finite = magnitude < (0x0400u << 13) ? denormal : normal;
  return std::bit_cast<Floats>(sign | (magnitude < (0x7c00u << 13) ? finite : special));
}

// Rounds to nearest, ties to even; what rounds beyond 65504 becomes infinite. A NaN stays a NaN.
template <class Bits, class Floats>
inline Bits float16_of_floats(Floats value) {
  const Bits bits = std::bit_cast<Bits>(value);
  const Bits sign = (bits >> 16) & 0x8000u;
  const Bits magnitude = bits & 0x7fffffffu;
  // Below 2^-14 the result is denormal: adding 0.5 makes the adder round at 2^-24, the last place of a half.
  const Bits denormal = std::bit_cast<Bits>(std::bit_cast<Floats>(magnitude) + 0.5f) - 0x3f000000u;
  const Bits normal = (magnitude - ((127u - 15u) << 23) + 0x0fffu + ((magnitude >> 13) & 1u)) >> 13;
  const Bits nan = ((magnitude >> 13) & 0x03ffu) | 0x7e00u;
  const Bits infinite = magnitude * 0u + 0x7c00u;
  const Bits finite = magnitude < 0x38800000u ? denormal : normal;
  const Bits number = magnitude >= 0x477ff000u ? infinite : finite;
  return sign | (magnitude > 0x7f800000u ? nan : number);
}

inline float to_float(Float16 value) {
  return floats_of_float16<float>(uint32_t{value.pattern});
}
inline float to_float(BFloat16 value) {
  return std::bit_cast<float>(uint32_t{value.pattern} << 16);
}
inline Float16 to_float16(float value) {
  return {static_cast<uint16_t>(float16_of_floats<uint32_t>(value))};
}
inline BFloat16 to_bfloat16(float value) {
  return {static_cast<uint16_t>(rounded_to_bfloat16<uint32_t>(value) >> 16)};
}

}  // namespace ddprun::reduction
