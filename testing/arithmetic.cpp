#include "testing/arithmetic.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "ddprun/plugin/detail/mix.hpp"

namespace ddprun::conformance {
namespace {

// A binary floating format: number of significand bits with the implied one, and the exponents of IEEE 754.
struct Format {
  int significand;
  int min_exponent;  // of the smallest normal number 2^min_exponent
  int width;
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::float16: return {11, -14, 16};
    case DType::bfloat16: return {8, -126, 16};
    case DType::float32: return {24, -126, 32};
    default: return {53, -1022, 64};
  }
}

// 2^exponent, for exponents of normal doubles. ldexp() on every element would take most of the suite's time.
long double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

// A 16-bit float, field by field; a cast would need compiler support.
long double decode(const Format& format, uint64_t bits) {
  const int stored = format.significand - 1;
  const int exponent_bits = format.width - format.significand;
  const uint64_t exponent_mask = (uint64_t{1} << exponent_bits) - 1;
  const uint64_t fraction = bits & ((uint64_t{1} << stored) - 1);
  const uint64_t exponent = (bits >> stored) & exponent_mask;
  const long double sign = (bits >> (format.width - 1)) & 1 ? -1 : 1;
  if (exponent == exponent_mask) {
    return fraction != 0 ? std::numeric_limits<long double>::quiet_NaN()
                         : sign * std::numeric_limits<long double>::infinity();
  }
  const uint64_t significand = exponent == 0 ? fraction : fraction | uint64_t{1} << stored;
  const int scale = format.min_exponent - stored + (exponent == 0 ? 0 : static_cast<int>(exponent) - 1);
  return sign * static_cast<long double>(significand) * power_of_two(scale);
}

uint64_t encode(const Format& format, long double real) {
  const int stored = format.significand - 1;
  const uint64_t sign = std::signbit(real) ? uint64_t{1} << (format.width - 1) : 0;
  const uint64_t exponent_mask = (uint64_t{1} << (format.width - format.significand)) - 1;
  if (std::isnan(real)) return exponent_mask << stored | uint64_t{1} << (stored - 1);
  if (std::isinf(real)) return sign | exponent_mask << stored;
  if (real == 0) return sign;
  const int exponent = std::max(std::ilogb(real), format.min_exponent);
  const auto significand = static_cast<uint64_t>(std::fabs(real) * power_of_two(stored - exponent));
  // The implied bit adds 1 to the exponent field; a subnormal has no implied bit and stays at 0.
  const auto field = static_cast<uint64_t>(exponent - format.min_exponent);
  return sign | ((field << stored) + significand);
}

long double real_contribution(DType dtype, Op op, uint64_t hash, int rank, std::size_t index) {
  const int precision = format_of(dtype).significand;
  const long double sign = hash >> 63 ? -1 : 1;
  const bool exact = index % 2 == 0;
  if (op == Op::product) {
    // 1/2 and 2 alternate by rank, so that no partial product of neighbours exceeds the range of float16.
    if (exact) return sign * ((hash & 1) == 0 ? 1.0L : rank % 2 == 0 ? 2.0L : 0.5L);
    const uint64_t fraction = hash & ((uint64_t{1} << (precision - 3)) - 1);
    return sign + ((hash >> 62 & 1) != 0 ? 1 : -1) * static_cast<long double>(fraction) * power_of_two(1 - precision);
  }
  if (exact) return sign * static_cast<long double>(hash % 8);
  const uint64_t significand = hash & ((uint64_t{1} << precision) - 1);
  return sign * static_cast<long double>(significand) * power_of_two(-precision);
}

int width_of(DType dtype) {
  return static_cast<int>(size_of(dtype)) * 8;
}

uint64_t extend(DType dtype, uint64_t bits) {
  const int unused = 64 - width_of(dtype);
  if (dtype == DType::uint8) return bits << unused >> unused;
  return static_cast<uint64_t>(static_cast<int64_t>(bits << unused) >> unused);
}

uint64_t bits_of(DType dtype, const Value& value) {
  if (!is_floating(dtype)) return value.bits;
  if (dtype == DType::float32) return std::bit_cast<uint32_t>(static_cast<float>(value.real));
  if (dtype == DType::float64) return std::bit_cast<uint64_t>(static_cast<double>(value.real));
  return encode(format_of(dtype), value.real);
}

uint64_t reduce_bits(Op op, uint64_t a, uint64_t b) {
  const bool less = static_cast<int64_t>(a) < static_cast<int64_t>(b);  // also for uint8: it is zero-extended
  switch (op) {
    case Op::min: return less ? a : b;
    case Op::max: return less ? b : a;
    case Op::product: return a * b;
    default: return a + b;
  }
}

}  // namespace

long double unit_roundoff(DType dtype) {
  return is_floating(dtype) ? power_of_two(-format_of(dtype).significand) : 0;
}

Value load(DType dtype, const void* data, std::size_t index) {
  const std::size_t size = size_of(dtype);
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(data) + index * size,
              size);  // little endian, like all supported platforms
  if (!is_floating(dtype)) return {0, extend(dtype, bits)};
  if (dtype == DType::float32) return {std::bit_cast<float>(static_cast<uint32_t>(bits)), 0};
  if (dtype == DType::float64) return {std::bit_cast<double>(bits), 0};
  return {decode(format_of(dtype), bits), 0};
}

void store(DType dtype, const Value& value, void* data, std::size_t index) {
  const std::size_t size = size_of(dtype);
  const uint64_t bits = bits_of(dtype, value);
  std::memcpy(static_cast<char*>(data) + index * size, &bits, size);
}

std::string to_text(DType dtype, const Value& value) {
  std::ostringstream text;
  if (is_floating(dtype)) {
    text.precision(std::numeric_limits<double>::max_digits10);
    text << static_cast<double>(value.real);
  } else {
    text << static_cast<int64_t>(value.bits);
  }
  return text.str();
}

Value contribution(DType dtype, Op op, uint64_t seed, int rank, std::size_t index) {
  // Each seed and rank begins far from the others in the one sequence that mix() gives.
  const uint64_t begin = seed * 0xd1342543de82ef95 + static_cast<uint64_t>(rank) * 0xaf251af3b0f025b5;
  const uint64_t hash = mix(begin + index);
  if (is_floating(dtype)) return {real_contribution(dtype, op, hash, rank, index), 0};
  // Odd factors at odd indices: a product of even factors soon is 0 modulo 2^n and would hide a surplus factor.
  const bool odd = op == Op::product && index % 2 == 1;
  return {0, extend(dtype, odd ? hash | 1 : hash)};
}

void fill(DType dtype, Op op, uint64_t seed, int rank, std::size_t first, std::size_t count, void* data) {
  for (std::size_t i = 0; i < count; ++i) store(dtype, contribution(dtype, op, seed, rank, first + i), data, i);
}

Expected reduce(DType dtype, Op op, uint64_t seed, int size, std::size_t index) {
  Value result = contribution(dtype, op, seed, 0, index);
  long double magnitude = std::fabs(result.real);
  for (int rank = 1; rank < size; ++rank) {
    const Value next = contribution(dtype, op, seed, rank, index);
    result.bits = extend(dtype, reduce_bits(op, result.bits, next.bits));
    switch (op) {
      case Op::min: result.real = std::min(result.real, next.real); break;
      case Op::max: result.real = std::max(result.real, next.real); break;
      case Op::product: result.real *= next.real; break;
      default: result.real += next.real;
    }
    magnitude += std::fabs(next.real);
  }
  if (op == Op::avg) {
    result.real /= size;
    magnitude /= size;
  }
  if (op == Op::product) magnitude = std::fabs(result.real);
  const bool exact = op == Op::min || op == Op::max || (op != Op::avg && index % 2 == 0);
  if (!is_floating(dtype) || size == 1 || exact) return {result, 0};
  const long double roundings = unit_roundoff(dtype) * (op == Op::avg ? size + 2 : size);
  long double bound = roundings / (1 - roundings) * magnitude;
  if (op == Op::avg) {
    const Format format = format_of(dtype);
    bound += size * std::ldexp(1.0L, format.min_exponent - format.significand);
  }
  return {result, bound};
}

bool accepts(DType dtype, const Expected& expected, const Value& got) {
  if (!is_floating(dtype)) return got.bits == expected.value.bits;
  return std::fabs(got.real - expected.value.real) <= expected.bound;
}

}  // namespace ddprun::conformance
