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

// All numbers of a pattern in its format.
class Encoded {
 public:
  explicit Encoded(const Pattern& pattern) : size_(size_of(pattern.dtype)) {
    constexpr int64_t kLargest = 256;  // a rank's; a sum is below the number of ranks times as much
    bytes_.resize(static_cast<std::size_t>(kLargest * pattern.ranks + 2) * size_);
    for (int64_t number = -1; number <= kLargest * pattern.ranks; ++number) {
      const conformance::Value value{static_cast<long double>(number), static_cast<uint64_t>(number)};
      conformance::store(pattern.dtype, value, bytes_.data(), static_cast<std::size_t>(number + 1));
    }
  }

  void put(int64_t number, void* data, std::size_t index) const {
    std::memcpy(static_cast<char*>(data) + index * size_, bytes_of(number), size_);
  }
  bool is_in(const void* data, std::size_t index, int64_t number) const {
    return std::memcmp(static_cast<const char*>(data) + index * size_, bytes_of(number), size_) == 0;
  }

 private:
  const char* bytes_of(int64_t number) const { return bytes_.data() + static_cast<std::size_t>(number + 1) * size_; }

  std::size_t size_;
  std::vector<char> bytes_;
};

}  // namespace

void fill(const Pattern& pattern, int rank, std::size_t first, std::size_t count, void* data) {
  const Contribution contribution(pattern, rank);
  const Encoded encoded(pattern);
  for (std::size_t i = 0; i < count; ++i) encoded.put(contribution(first + i), data, i);
}

uint64_t wrong_copies(const Pattern& pattern, int rank, std::size_t first, std::size_t count, const void* data) {
  const Contribution contribution(pattern, rank);
  const Encoded encoded(pattern);
  uint64_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += !encoded.is_in(data, i, contribution(first + i));
  return wrong;
}

uint64_t wrong_reductions(const Pattern& pattern, std::size_t first, std::size_t count, const void* data) {
  const Encoded encoded(pattern);
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
      wrong += !encoded.is_in(data, i, number);
    }
  }
  return wrong;
}

}  // namespace ddprun::comm
