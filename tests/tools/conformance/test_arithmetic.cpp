// The reference for backends: it must be correct itself.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "testing/arithmetic.hpp"
#include "tools/conformance/guarded.hpp"

using namespace ddprun::conformance;
using ddprun::DType;
using ddprun::Op;

namespace {

constexpr DType kFloats[] = {DType::float16, DType::bfloat16, DType::float32, DType::float64};
constexpr DType kIntegers[] = {DType::int8, DType::int16, DType::int32, DType::int64, DType::uint8};

long double decoded(DType dtype, uint16_t bits) {
  return load(dtype, &bits, 0).real;
}

template <class T>
T rounded(DType dtype, long double real) {
  T result;
  store(dtype, {real, 0}, &result, 0);
  return result;
}

// A sum in the dtype itself, one addend after the other: float32 directly, 16-bit floats through float32.
float naive_sum(const std::vector<float>& values) {
  float sum = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) sum += values[i];
  return sum;
}

}  // namespace

TEST_CASE("known bit patterns of float16 and bfloat16 mean what IEEE 754 says") {
  CHECK(decoded(DType::float16, 0x3c00) == 1);
  CHECK(decoded(DType::float16, 0xc000) == -2);
  CHECK(decoded(DType::float16, 0x7bff) == 65504);
  CHECK(decoded(DType::float16, 0x0001) == std::ldexp(1.0L, -24));
  CHECK(decoded(DType::float16, 0x0400) == std::ldexp(1.0L, -14));
  CHECK(std::isinf(decoded(DType::float16, 0x7c00)));
  CHECK(std::isnan(decoded(DType::float16, 0x7e00)));
  CHECK(decoded(DType::bfloat16, 0x3f80) == 1);
  CHECK(decoded(DType::bfloat16, 0xc040) == -3);
  CHECK(decoded(DType::bfloat16, 0x0001) == std::ldexp(1.0L, -133));
}

TEST_CASE("every pattern of the 16-bit floats survives reading and writing") {
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
      const long double real = decoded(dtype, static_cast<uint16_t>(bits));
      if (std::isnan(real)) continue;
      REQUIRE(rounded<uint16_t>(dtype, real) == bits);
    }
  }
}

TEST_CASE("float32 and float64 have the machine's format") {
  CHECK(rc::check("float32", [](float value) { RC_ASSERT(load(DType::float32, &value, 0).real == value); }));
  CHECK(rc::check("float64", [](double value) {
    RC_ASSERT(load(DType::float64, &value, 0).real == value);
    RC_ASSERT(rounded<double>(DType::float64, value) == value);
  }));
}

TEST_CASE("contributions are representable, so writing them is exact") {
  for (const DType dtype : kFloats) {
    for (const Op op : {Op::sum, Op::product}) {
      for (std::size_t i = 0; i < 2000; ++i) {
        const Value value = contribution(dtype, op, 3, 1, i);
        unsigned char bytes[8] = {};
        store(dtype, value, bytes, 0);
        REQUIRE(load(dtype, bytes, 0).real == value.real);
      }
    }
  }
}

TEST_CASE("contributions differ between ranks, seeds and elements") {
  std::set<uint64_t> seen;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    for (int rank = 0; rank < 4; ++rank) {
      for (std::size_t i = 0; i < 64; ++i) seen.insert(contribution(DType::int64, Op::sum, seed, rank, i).bits);
    }
  }
  CHECK(seen.size() == 4 * 4 * 64);
}

TEST_CASE("integer reductions are those of the machine, modulo 2^n") {
  for (const Op op : {Op::sum, Op::product, Op::min, Op::max}) {
    for (std::size_t i = 0; i < 500; ++i) {
      uint8_t u = static_cast<uint8_t>(contribution(DType::uint8, op, 1, 0, i).bits);
      int8_t s = static_cast<int8_t>(contribution(DType::int8, op, 1, 0, i).bits);
      for (int rank = 1; rank < 5; ++rank) {
        const auto v = static_cast<uint8_t>(contribution(DType::uint8, op, 1, rank, i).bits);
        const auto t = static_cast<int8_t>(contribution(DType::int8, op, 1, rank, i).bits);
        u = op == Op::sum ? u + v : op == Op::product ? u * v : op == Op::min ? std::min(u, v) : std::max(u, v);
        s = op == Op::sum ? s + t : op == Op::product ? s * t : op == Op::min ? std::min(s, t) : std::max(s, t);
      }
      REQUIRE(accepts(DType::uint8, reduce(DType::uint8, op, 1, 5, i), load(DType::uint8, &u, 0)));
      REQUIRE(accepts(DType::int8, reduce(DType::int8, op, 1, 5, i), load(DType::int8, &s, 0)));
    }
  }
}

TEST_CASE("a float32 sum in any order is accepted, a sum without a rank or slightly too large is not") {
  int caught = 0;
  constexpr int kElements = 2000;
  for (std::size_t i = 0; i < kElements; ++i) {
    std::vector<float> values;
    for (int rank = 0; rank < 5; ++rank) {
      values.push_back(static_cast<float>(contribution(DType::float32, Op::sum, 1, rank, i).real));
    }
    const Expected expected = reduce(DType::float32, Op::sum, 1, 5, i);
    std::sort(values.begin(), values.end());
    do {
      REQUIRE(accepts(DType::float32, expected, {naive_sum(values), 0}));
    } while (std::next_permutation(values.begin(), values.end()));
    CHECK_FALSE(accepts(DType::float32, expected, {naive_sum(values) + 1e-4L, 0}));
    values.pop_back();
    caught += !accepts(DType::float32, expected, {naive_sum(values), 0});
  }
  CHECK(caught > kElements * 9 / 10);  // the missing contribution may have been 0
}

TEST_CASE("the bound is 0 for exact results, and else grows with ranks and roundoff") {
  for (const DType dtype : kFloats) {
    CHECK(reduce(dtype, Op::sum, 1, 5, 0).bound == 0);
    CHECK(reduce(dtype, Op::product, 1, 5, 2).bound == 0);
    CHECK(reduce(dtype, Op::min, 1, 5, 1).bound == 0);
    CHECK(reduce(dtype, Op::sum, 1, 1, 1).bound == 0);
    CHECK(reduce(dtype, Op::sum, 1, 5, 1).bound > reduce(dtype, Op::sum, 1, 3, 1).bound);
    CHECK(reduce(dtype, Op::avg, 1, 3, 1).bound > 0);
  }
  CHECK(reduce(DType::bfloat16, Op::product, 1, 5, 1).bound >
        1000 * reduce(DType::float32, Op::product, 1, 5, 1).bound);
}

TEST_CASE("an average of float16 in float16 itself is accepted, summed first or divided first") {
  const auto half = [](long double real) {  // round to nearest: search the two neighbours
    const int exponent = std::max(std::ilogb(real == 0 ? 1 : real), -14);
    return std::ldexp(std::nearbyint(std::ldexp(real, 10 - exponent)), exponent - 10);
  };
  for (std::size_t i = 0; i < 3000; ++i) {
    long double sum = 0;
    long double divided = 0;
    for (int rank = 0; rank < 5; ++rank) {
      const long double value = contribution(DType::float16, Op::avg, 1, rank, i).real;
      sum = half(sum + value);
      divided = half(divided + half(value * half(1.0L / 5)));
    }
    const Expected expected = reduce(DType::float16, Op::avg, 1, 5, i);
    REQUIRE(accepts(DType::float16, expected, {half(sum / 5), 0}));
    REQUIRE(accepts(DType::float16, expected, {divided, 0}));
  }
}

TEST_CASE("NaN and the neighbour of an integer are never accepted") {
  const long double nan = std::numeric_limits<long double>::quiet_NaN();
  for (const DType dtype : kFloats) CHECK_FALSE(accepts(dtype, reduce(dtype, Op::sum, 1, 3, 1), {nan, 0}));
  for (const DType dtype : kIntegers) {
    const Expected expected = reduce(dtype, Op::sum, 1, 3, 1);
    CHECK(accepts(dtype, expected, expected.value));
    CHECK_FALSE(accepts(dtype, expected, {0, expected.value.bits + 1}));
  }
}

TEST_CASE("a guarded buffer detects a byte written before or after it, and only there") {
  for (const std::size_t shift : {0, 2, 8}) {
    Guarded buffer(100, shift);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64 == shift);
    std::memset(buffer.data(), 0, 100);
    CHECK(buffer.intact());
    for (const std::ptrdiff_t outside : {-200, -1, 100, 300}) {
      unsigned char* byte = buffer.data() + outside;
      const unsigned char before = *byte;
      *byte = static_cast<unsigned char>(before + 1);
      CHECK_FALSE(buffer.intact());
      *byte = before;
    }
    CHECK(buffer.intact());
  }
}
