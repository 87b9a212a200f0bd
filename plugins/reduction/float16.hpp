// The two 16-bit floating types as bit patterns, to and from float32. Branch-free, so that loops over them vectorise;
// exact whatever the processor does with denormal float32 numbers, because none ever occurs on the way.
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

inline float to_float(BFloat16 value) {
  return std::bit_cast<float>(uint32_t{value.pattern} << 16);
}

inline float to_float(Float16 value) {
  const uint32_t sign = (value.pattern & 0x8000u) << 16;
  const uint32_t magnitude = value.pattern & 0x7fffu;
  // Denormal half numbers are magnitude * 2^-24; in others, the exponent's bias goes from 15 to 127, or to all ones.
  const uint32_t denormal = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  const uint32_t normal = (magnitude << 13) + ((127u - 15u) << 23);
  const uint32_t special = (magnitude << 13) | 0x7f800000u;
  const uint32_t result = magnitude < 0x0400u ? denormal : magnitude < 0x7c00u ? normal : special;
  return std::bit_cast<float>(sign | result);
}

// Rounds to nearest, ties to even. A NaN stays one (quiet, its upper fraction bits kept).
inline BFloat16 to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t nan = (bits >> 16) | 0x0040u;
  return {static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded)};
}

// Rounds to nearest, ties to even; what rounds beyond 65504 becomes infinite. A NaN stays one.
inline Float16 to_float16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  // Below 2^-14 the result is denormal: adding 0.5 makes the adder round at 2^-24, the last place of a half.
  const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
  const uint32_t denormal = std::bit_cast<uint32_t>(aligned) - std::bit_cast<uint32_t>(0.5f);
  const uint32_t normal = (magnitude - ((127u - 15u) << 23) + 0x0fffu + ((magnitude >> 13) & 1u)) >> 13;
  const uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x03ffu);
  const uint32_t finite = magnitude < 0x38800000u ? denormal : normal;
  const uint32_t result = magnitude > 0x7f800000u ? nan : magnitude >= 0x477ff000u ? 0x7c00u : finite;
  return {static_cast<uint16_t>(sign | result)};
}

}  // namespace ddprun::reduction
