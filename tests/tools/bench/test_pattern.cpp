#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <vector>

#include "tools/bench/benchmark.hpp"

namespace ddprun::comm {
namespace {

constexpr std::array kAllTypes = {DType::float16, DType::bfloat16, DType::float32, DType::float64, DType::int8,
                                  DType::int16,   DType::int32,    DType::int64,   DType::uint8};
constexpr std::size_t kCount = 257;

std::vector<std::byte> data_of(const Pattern& pattern, int rank, std::size_t first, std::size_t count) {
  std::vector<std::byte> data(count * size_of(pattern.dtype));
  fill(pattern, rank, first, count, data.data());
  return data;
}

// Most of `kCount` elements: in small types some are equal by chance.
void check_most(uint64_t wrong) {
  CHECK(wrong > kCount / 3);
}

TEST_CASE("filled data is correct, data of another rank, offset or call is not") {
  for (const DType dtype : kAllTypes) {
    CAPTURE(name_of(dtype));
    const Pattern pattern{dtype, Op::sum, 4, 1};
    const auto data = data_of(pattern, 2, 10, kCount);
    CHECK(wrong_copies(pattern, 2, 10, kCount, data.data()) == 0);
    check_most(wrong_copies(pattern, 1, 10, kCount, data.data()));
    check_most(wrong_copies(pattern, 2, 11, kCount, data.data()));
    check_most(wrong_copies({dtype, Op::sum, 4, 2}, 2, 10, kCount, data.data()));
  }
}

TEST_CASE("one wrong element counts as one") {
  for (const DType dtype : kAllTypes) {
    CAPTURE(name_of(dtype));
    const Pattern pattern{dtype, Op::sum, 1, 1};
    auto data = data_of(pattern, 0, 0, kCount);
    CHECK(wrong_reductions(pattern, 0, kCount, data.data()) == 0);
    data[100 * size_of(dtype)] ^= std::byte{1};  // the last bit of its significand
    CHECK(wrong_reductions(pattern, 0, kCount, data.data()) == 1);
    CHECK(wrong_copies(pattern, 0, 0, kCount, data.data()) == 1);
  }
}

// Compares with a reduction in float64, which rounds nothing.
TEST_CASE("a reduction over all ranks is correct, one without a rank is not") {
  for (const Op op : {Op::sum, Op::min, Op::max, Op::product, Op::avg}) {
    CAPTURE(name_of(op));
    const Pattern pattern{DType::float64, op, 3, 5};
    std::vector<double> result(kCount), two(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      std::array<double, 3> x{};
      for (int rank = 0; rank < 3; ++rank) fill(pattern, rank, 7 + i, 1, &x.at(static_cast<std::size_t>(rank)));
      const auto combine = [&](double a, double b) {
        return op == Op::min ? std::min(a, b) : op == Op::max ? std::max(a, b) : op == Op::product ? a * b : a + b;
      };
      two[i] = combine(x[0], x[1]);
      result[i] = combine(two[i], x[2]);
      if (op == Op::avg) result[i] /= 3;
    }
    CHECK(wrong_reductions(pattern, 7, kCount, result.data()) == 0);
    CHECK(wrong_reductions(pattern, 7, kCount, two.data()) > kCount / 4);
  }
}

TEST_CASE("integers wrap, and half types hold the sums of many ranks exactly") {
  const Pattern bytes{DType::uint8, Op::sum, 3, 9};
  std::vector<uint8_t> wrapped(kCount), next(kCount);
  for (int rank = 0; rank < 3; ++rank) {
    fill(bytes, rank, 0, kCount, next.data());
    for (std::size_t i = 0; i < kCount; ++i) wrapped[i] = static_cast<uint8_t>(wrapped[i] + next[i]);
  }
  CHECK(wrong_reductions(bytes, 0, kCount, wrapped.data()) == 0);

  // bfloat16 is the upper half of float32: a sum that it cannot hold would have bits in the lower half.
  const Pattern halves{DType::bfloat16, Op::sum, 100, 9};
  std::vector<uint16_t> result(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    float sum = 0;
    for (int rank = 0; rank < 100; ++rank) {
      uint16_t half = 0;
      fill(halves, rank, i, 1, &half);
      const uint32_t bits = static_cast<uint32_t>(half) << 16;
      float value = 0;
      std::memcpy(&value, &bits, sizeof value);
      sum += value;
    }
    uint32_t bits = 0;
    std::memcpy(&bits, &sum, sizeof bits);
    CHECK((bits & 0xFFFF) == 0);
    result[i] = static_cast<uint16_t>(bits >> 16);
  }
  CHECK(wrong_reductions(halves, 0, kCount, result.data()) == 0);
}

TEST_CASE("an average may differ by rounding only") {
  const Pattern pattern{DType::float32, Op::avg, 3, 11};
  std::vector<float> result(kCount, 0.0F), next(kCount);
  for (int rank = 0; rank < 3; ++rank) {
    fill(pattern, rank, 0, kCount, next.data());
    for (std::size_t i = 0; i < kCount; ++i) result[i] += next[i] / 3;
  }
  CHECK(wrong_reductions(pattern, 0, kCount, result.data()) == 0);
  for (float& value : result) value += value * 1e-5F;
  CHECK(wrong_reductions(pattern, 0, kCount, result.data()) > kCount / 2);
}

}  // namespace
}  // namespace ddprun::comm
