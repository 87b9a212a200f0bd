#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "ddprun/plugin/detail/mix.hpp"
#include "testing/arithmetic.hpp"
#include "tools/bench/benchmark.hpp"

namespace ddprun::comm {
namespace {

// The elements of one rank.
class Contribution {
 public:
  Contribution(const Pattern& pattern, int rank)
      : key_(mix(mix(pattern.seed) + static_cast<uint64_t>(rank))), product_(pattern.op == Op::product) {
    constexpr int kSignificand = 8;  // of bfloat16, the smallest: it holds the sum of all ranks
    const auto bits = kSignificand - static_cast<int>(std::bit_width(static_cast<unsigned>(pattern.ranks - 1)));
    mask_ = (1 << std::max(1, bits)) - 1;
  }

  int64_t operator()(std::size_t index) const {
    const auto hash = static_cast<int64_t>(mix(key_ + index));
    return product_ ? (hash & 2) - 1 : hash & mask_;
  }

 private:
  uint64_t key_;
  bool product_;
  int64_t mask_ = 0;
};

int64_t combine(Op op, int64_t a, int64_t b) {
  switch (op) {
    case Op::min: return std::min(a, b);
    case Op::max: return std::max(a, b);
    case Op::product: return a * b;
    default: return a + b;
  }
}

void put(DType dtype, int64_t number, void* data, std::size_t index) {
  conformance::store(dtype, {static_cast<long double>(number), static_cast<uint64_t>(number)}, data, index);
}

bool is_in(DType dtype, const void* data, std::size_t index, int64_t number) {
  char expected[8];
  put(dtype, number, expected, 0);
  return std::memcmp(static_cast<const char*>(data) + index * size_of(dtype), expected, size_of(dtype)) == 0;
}

}  // namespace

void fill(const Pattern& pattern, int rank, std::size_t first, std::size_t count, void* data) {
  const Contribution contribution(pattern, rank);
  for (std::size_t i = 0; i < count; ++i) put(pattern.dtype, contribution(first + i), data, i);
}

uint64_t wrong_copies(const Pattern& pattern, int rank, std::size_t first, std::size_t count, const void* data) {
  const Contribution contribution(pattern, rank);
  uint64_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += !is_in(pattern.dtype, data, i, contribution(first + i));
  return wrong;
}

uint64_t wrong_reductions(const Pattern& pattern, std::size_t first, std::size_t count, const void* data) {
  std::vector<Contribution> terms;
  for (int rank = 0; rank < pattern.ranks; ++rank) terms.emplace_back(pattern, rank);
  const auto ranks = static_cast<long double>(pattern.ranks);
  const long double roundings = (ranks + 2) * conformance::unit_roundoff(pattern.dtype);  // of an average
  uint64_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    int64_t number = terms[0](first + i);
    for (std::size_t rank = 1; rank < terms.size(); ++rank) {
      number = combine(pattern.op, number, terms[rank](first + i));
    }
    if (pattern.op == Op::avg) {
      const long double mean = static_cast<long double>(number) / ranks;
      const long double error = std::fabs(conformance::load(pattern.dtype, data, i).real - mean);
      wrong += !(error <= roundings / (1 - roundings) * mean);
    } else {
      wrong += !is_in(pattern.dtype, data, i, number);
    }
  }
  return wrong;
}

}  // namespace ddprun::comm
