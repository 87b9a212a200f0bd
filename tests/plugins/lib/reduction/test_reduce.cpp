// The reductions against float64 and 128-bit arithmetic.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "reduction/float16.hpp"
#include "reduction/reduce.hpp"

namespace {

using namespace ddprun::reduction;
using ddprun::DType;
using ddprun::Op;

template <class T, DType dtype_number>
struct Type {
  using Element = T;
  static constexpr DType dtype = dtype_number;
};

constexpr std::array<Op, 4> kOps = {Op::sum, Op::min, Op::max, Op::product};

__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

// Computed in arithmetic that cannot overflow, then cut to the type.
template <class T>
T expected_integer(Op op, T a, T b) {
  const Wide x = a, y = b;
  const Wide exact = op == Op::sum       ? x + y
                     : op == Op::product ? x * y
                     : op == Op::min     ? std::min(x, y)
                                         : std::max(x, y);
  std::make_unsigned_t<T> bits = static_cast<std::make_unsigned_t<T>>(static_cast<UnsignedWide>(exact));
  T result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

template <class Integer>
void check_integers() {
  using T = typename Integer::Element;
  CHECK(rc::check("integers wrap", [] {
    const auto op = *rc::gen::elementOf(kOps);
    const auto count = *rc::gen::inRange<std::size_t>(0, 70);
    const auto any = rc::gen::oneOf(
        rc::gen::arbitrary<T>(), rc::gen::element(std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), T(-1)));
    const auto a = *rc::gen::container<std::vector<T>>(count, any), b = *rc::gen::container<std::vector<T>>(count, any);
    std::vector<T> out(count);
    reduce_function(Integer::dtype, op)(out.data(), a.data(), b.data(), count);
    for (std::size_t i = 0; i < count; ++i) RC_ASSERT(out[i] == expected_integer(op, a[i], b[i]));
  }));
}

TEST_CASE_TEMPLATE("integers are reduced modulo 2^n", T, Type<int8_t, DType::int8>, Type<int16_t, DType::int16>,
                   Type<int32_t, DType::int32>, Type<int64_t, DType::int64>, Type<uint8_t, DType::uint8>) {
  check_integers<T>();
}

double expected_floating(Op op, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  switch (op) {
    case Op::sum: return a + b;
    case Op::product: return a * b;
    case Op::min: return std::min(a, b);
    default: return std::max(a, b);
  }
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || a == b;
}

template <class T>
void check_floating(DType dtype) {
  constexpr T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> values = {0, T(-0.0), 1, T(-2.5), T(1e-30), T(3e30), infinity, -infinity, nan};
  std::vector<T> a, b;
  for (const T x : values) {
    for (const T y : values) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  for (const auto op : kOps) {
    std::vector<T> out(a.size());
    reduce_function(dtype, op)(out.data(), a.data(), b.data(), a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      CAPTURE(op);
      CAPTURE(a[i]);
      CAPTURE(b[i]);
      CHECK(same(out[i], static_cast<T>(expected_floating(op, a[i], b[i]))));
    }
  }
}

TEST_CASE("float32 and float64 follow IEEE 754, and a NaN on either side gives a NaN, for min and max too") {
  check_floating<float>(DType::float32);
  check_floating<double>(DType::float64);
}

// All patterns against a set that has every kind of number. The reference is rounded from float64 in one step, which is
// exact enough for the sum and product of such short fractions.
template <class T>
void check_sixteen_bits(DType dtype, T (*store)(float)) {
  const std::vector<float> others = {0.0f,
                                     -0.0f,
                                     1.0f,
                                     -1.5f,
                                     0x1p-14f,
                                     0x1p-24f,
                                     3.14f,
                                     60000.0f,
                                     -2048.0f,
                                     std::numeric_limits<float>::infinity(),
                                     std::numeric_limits<float>::quiet_NaN()};
  std::vector<T> all(0x10000);
  for (uint32_t pattern = 0; pattern <= 0xffffu; ++pattern) all[pattern].pattern = static_cast<uint16_t>(pattern);
  for (const auto op : kOps) {
    for (const float other : others) {
      const std::vector<T> b(all.size(), store(other));
      std::vector<T> out(all.size());
      reduce_function(dtype, op)(out.data(), all.data(), b.data(), all.size());
      for (std::size_t i = 0; i < all.size(); ++i) {
        const double exact = expected_floating(op, to_float(all[i]), to_float(b[i]));
        if (!same(to_float(out[i]), to_float(store(static_cast<float>(exact))))) {
          FAIL_CHECK("op " << op << ": pattern " << i << " and " << other);
        }
      }
    }
  }
}

TEST_CASE("float16 and bfloat16 are reduced in float32 and rounded to nearest even, for every pattern") {
  check_sixteen_bits<Float16>(DType::float16, to_float16);
  check_sixteen_bits<BFloat16>(DType::bfloat16, to_bfloat16);
}

TEST_CASE("a reduction may write over either operand") {
  for (std::size_t dtype_number = 0; dtype_number < ddprun::kDTypeCount; ++dtype_number) {
    const auto dtype = static_cast<DType>(dtype_number);
    CAPTURE(dtype);
    const std::size_t count = 37, bytes = count * ddprun::size_of(dtype);
    std::vector<uint8_t> a(bytes), b(bytes), expected(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
      a[i] = static_cast<uint8_t>(i % 50), b[i] = static_cast<uint8_t>(40 - i % 40);
    const auto sum = reduce_function(dtype, Op::sum);
    sum(expected.data(), a.data(), b.data(), count);
    auto over_a = a, over_b = b;
    sum(over_a.data(), over_a.data(), b.data(), count);
    sum(over_b.data(), a.data(), over_b.data(), count);
    CHECK(over_a == expected);
    CHECK(over_b == expected);
  }
}

// 2^-9 is less than half of bfloat16's last place at 1; three of them are more than half.
TEST_CASE("reduce_all adds 16-bit floats in float32 and rounds once") {
  const BFloat16 one = to_bfloat16(1.0f), little = to_bfloat16(0x1p-9f);
  const void* const from[] = {&one, &little, &little, &little};
  BFloat16 first, second;
  void* const to[] = {&first, &second};
  reduce_all(to, 2, from, 4, DType::bfloat16, Op::sum, 1);
  CHECK(to_float(first) == 1.0f + 0x1p-7f);
  CHECK(second.pattern == first.pattern);
}

// In the order of ddprun_comm_algorithm::canonical_order; also without a power of two, the sums of subtrees.
float sum_in_order(const std::vector<std::vector<float>>& from, std::size_t i) {
  std::vector<float> sums;
  for (const auto& vector : from) sums.push_back(vector[i]);
  for (std::size_t step = 1; step < sums.size(); step *= 2) {
    for (std::size_t at = 0; at + step < sums.size(); at += 2 * step) sums[at] += sums[at + step];
  }
  return sums[0];
}

TEST_CASE("reduce_all adds neighbours first, in a binary tree, for any number of vectors and elements") {
  CHECK(rc::check("tree", [] {
    const auto vectors = *rc::gen::inRange<std::size_t>(1, 40), count = *rc::gen::inRange<std::size_t>(1, 150);
    std::vector<std::vector<float>> from(vectors, std::vector<float>(count));
    std::vector<const void*> sources;
    uint32_t state = *rc::gen::arbitrary<uint32_t>();
    for (auto& vector : from) {
      for (float& value : vector) value = static_cast<float>(state = state * 1'664'525 + 1'013'904'223) / 3.0f - 7e8f;
      sources.push_back(vector.data());
    }
    std::vector<float> sum(count);
    void* const to = sum.data();
    reduce_all(&to, 1, sources.data(), static_cast<int>(vectors), DType::float32, Op::sum, count);
    for (std::size_t i = 0; i < count; ++i) RC_ASSERT(sum[i] == sum_in_order(from, i));
  }));
}

TEST_CASE("divide gives the mean of a sum for each floating type") {
  float singles[] = {3, -9, 1};
  double doubles[] = {3, -9, 1};
  Float16 halves[] = {to_float16(3), to_float16(-9), to_float16(1)};
  BFloat16 brains[] = {to_bfloat16(3), to_bfloat16(-9), to_bfloat16(1)};
  divide(singles, DType::float32, 3, 3);
  divide(doubles, DType::float64, 3, 3);
  divide(halves, DType::float16, 3, 3);
  divide(brains, DType::bfloat16, 3, 3);
  CHECK(singles[0] == 1.0f);
  CHECK(singles[1] == -3.0f);
  CHECK(singles[2] == 1.0f / 3.0f);
  CHECK(doubles[2] == 1.0 / 3.0);
  CHECK(halves[2].pattern == 0x3555);
  CHECK(brains[2].pattern == 0x3eab);
}

}  // namespace
