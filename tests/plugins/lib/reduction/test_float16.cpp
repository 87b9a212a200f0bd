// float16 and bfloat16 against float64 arithmetic, over all patterns.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "reduction/float16.hpp"

namespace {

using namespace ddprun::reduction;

// The value of a 16-bit float with this many exponent and fraction bits, from the definition in IEEE 754.
double value_of(uint32_t pattern, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(pattern >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = static_cast<int>(pattern) & ((1 << fraction_bits) - 1);
  const double sign = (pattern & 0x8000u) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

struct Half {
  static constexpr int exponent = 5, fraction = 10;
  static float load(uint32_t pattern) { return to_float(Float16{static_cast<uint16_t>(pattern)}); }
  static uint32_t store(float value) { return to_float16(value).pattern; }
};
struct Brain {
  static constexpr int exponent = 8, fraction = 7;
  static float load(uint32_t pattern) { return to_float(BFloat16{static_cast<uint16_t>(pattern)}); }
  static uint32_t store(float value) { return to_bfloat16(value).pattern; }
};

// The patterns of positive numbers are ascending, so a value's two neighbours are found by its pattern.
template <class T>
void check_rounding_between(uint32_t lower) {
  const double below = value_of(lower, T::exponent, T::fraction);
  double above = value_of(lower + 1, T::exponent, T::fraction);
  // The largest number rounds up at the point where it would, if a next number existed.
  if (std::isinf(above)) above = 2 * below - value_of(lower - 1, T::exponent, T::fraction);
  const auto tie = static_cast<float>((below + above) / 2);  // exact: float has more bits than the type
  const float before = std::nextafterf(tie, 0.0f);
  const float after = std::nextafterf(tie, std::numeric_limits<float>::infinity());
  const uint32_t even = lower + (lower & 1u);
  bool right = T::store(before) == lower && T::store(tie) == even;
  if (std::isfinite(after)) right = right && T::store(after) == lower + 1;
  right = right && T::store(-before) == (0x8000u | lower) && T::store(-tie) == (0x8000u | even);
  if (!right) FAIL_CHECK("rounding near pattern " << lower);
}

template <class T>
void check_all_patterns() {
  const uint32_t infinity = ((1u << T::exponent) - 1) << T::fraction;
  for (uint32_t pattern = 0; pattern <= 0xffffu; ++pattern) {
    const double expected = value_of(pattern, T::exponent, T::fraction);
    const float loaded = T::load(pattern);
    const uint32_t back = T::store(loaded);
    const bool same = std::isnan(expected)
                          ? std::isnan(loaded) && std::isnan(T::load(back)) && (back >> 15) == (pattern >> 15)
                          : loaded == expected && back == pattern;
    if (!same) FAIL_CHECK("pattern " << pattern << " became " << loaded << " and " << back);
  }
  for (uint32_t lower = 0; lower < infinity; ++lower) check_rounding_between<T>(lower);
}

TEST_CASE_TEMPLATE("every 16-bit pattern converts exactly and back, and every tie goes to even", T, Half, Brain) {
  check_all_patterns<T>();
}

TEST_CASE_TEMPLATE("what is too large for 16 bits becomes infinite", T, Half, Brain) {
  const uint32_t infinity = ((1u << T::exponent) - 1) << T::fraction;
  CHECK(T::store(std::numeric_limits<float>::max()) == infinity);
  CHECK(T::store(-std::numeric_limits<float>::max()) == (0x8000u | infinity));
  CHECK(T::store(std::numeric_limits<float>::infinity()) == infinity);
}

TEST_CASE_TEMPLATE("a NaN whose upper bits are zero stays a NaN", T, Half, Brain) {
  CHECK(std::isnan(T::load(T::store(std::bit_cast<float>(0x7f800001u)))));
  CHECK(std::isnan(T::load(T::store(std::bit_cast<float>(0xff800001u)))));
}

}  // namespace
