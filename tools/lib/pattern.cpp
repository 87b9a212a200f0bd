#include "tools/lib/benchmark.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ddprun/plugin/detail/mix.hpp"

namespace ddprun::comm {
namespace {

// 16-bit formats as their patterns, so that no compiler support is needed. Only finite values are encoded, and only
// such as the format has exactly; all are decoded.
struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

template <class T>
constexpr int kSignificand = std::numeric_limits<T>::digits;
template <>
constexpr int kSignificand<Float16> = 11;
template <>
constexpr int kSignificand<BFloat16> = 8;

template <class T>
constexpr bool kFloating = std::is_floating_point_v<T> || std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// What the arithmetic is done in.
template <class T>
using Wide = std::conditional_t<kFloating<T>, double, T>;

double decode(Float16 value) {
  const int exponent = value.bits >> 10 & 31, fraction = value.bits & 1023;
  const double sign = (value.bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}
double decode(BFloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}
template <class T>
Wide<T> decode(T value) {
  return value;
}

template <class T>
T encode(Wide<T> value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return {static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16)};
  } else if constexpr (std::is_same_v<T, Float16>) {
    if (value == 0) return {0};
    const int exponent = std::ilogb(value);
    const auto fraction = static_cast<int>(std::ldexp(std::fabs(value), 10 - exponent)) - 1024;
    return {static_cast<uint16_t>((value < 0 ? 0x8000 : 0) | (exponent + 15) << 10 | fraction)};
  } else {
    return static_cast<T>(value);
  }
}

template <class Function>
auto with_type(DType dtype, Function function) {
  switch (dtype) {
    case DType::float16: return function(Float16{});
    case DType::bfloat16: return function(BFloat16{});
    case DType::float32: return function(float{});
    case DType::float64: return function(double{});
    case DType::int8: return function(int8_t{});
    case DType::int16: return function(int16_t{});
    case DType::int32: return function(int32_t{});
    case DType::int64: return function(int64_t{});
    case DType::uint8: break;
  }
  return function(uint8_t{});
}

// The elements of one rank.
template <class T>
class Contribution {
 public:
  Contribution(const Pattern& pattern, int rank)
      : key_(mix(mix(pattern.seed) + static_cast<uint64_t>(rank))),
        product_(pattern.op == Op::product),
        doubles_(rank < kDoublers),
        bits_(std::max(1,
                       kSignificand<T> - static_cast<int>(std::bit_width(static_cast<unsigned>(pattern.ranks - 1))))) {}

  Wide<T> operator()(std::size_t index) const {
    const uint64_t hash = mix(key_ + index);
    if constexpr (!kFloating<T>) {
      return static_cast<T>(product_ ? hash | 1 : hash);  // even factors soon make 0 of every product
    } else if (product_) {
      return ((hash & 1) != 0 ? -1.0 : 1.0) * (doubles_ && (hash & 2) != 0 ? 2.0 : 1.0);
    } else {
      return static_cast<double>(static_cast<int64_t>(hash) >> (63 - bits_));  // of all ranks: at most 2^significand
    }
  }

 private:
  static constexpr int kDoublers = 8;  // so that no product leaves float16

  uint64_t key_;
  bool product_;
  bool doubles_;
  int bits_;
};

template <class W>
W combine(Op op, W a, W b) {
  if (op == Op::min) return std::min(a, b);
  if (op == Op::max) return std::max(a, b);
  if constexpr (std::is_integral_v<W>) {  // modulo 2^n, which signed arithmetic would not be
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<W>(op == Op::product ? x * y : x + y);
  } else {
    return op == Op::product ? a * b : a + b;
  }
}

// The largest error of an average whose exact terms have this sum of magnitudes.
template <class T>
double average_bound(int ranks, double magnitudes) {
  if constexpr (!kFloating<T>) return 0;
  const double roundings = std::ldexp(ranks + 2, -kSignificand<T>);
  return roundings / (1 - roundings) * magnitudes / ranks;
}

template <class T>
T element(const void* data, std::size_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * sizeof(T), sizeof(T));
  return value;
}

// The reduction of one element over all ranks, and how far a result may be off.
template <class T>
class Reduction {
 public:
  explicit Reduction(const Pattern& pattern) : op_(pattern.op) {
    for (int rank = 0; rank < pattern.ranks; ++rank) terms_.emplace_back(pattern, rank);
  }

  bool accepts(std::size_t index, Wide<T> got) const {
    Wide<T> value = terms_[0](index);
    double magnitudes = std::fabs(static_cast<double>(value));
    for (std::size_t rank = 1; rank < terms_.size(); ++rank) {
      const Wide<T> next = terms_[rank](index);
      value = combine(op_, value, next);
      magnitudes += std::fabs(static_cast<double>(next));
    }
    if (op_ != Op::avg) return got == value;
    const auto ranks = static_cast<int>(terms_.size());
    const double error = std::fabs(static_cast<double>(got) - static_cast<double>(value) / ranks);
    return error <= average_bound<T>(ranks, magnitudes);
  }

 private:
  Op op_;
  std::vector<Contribution<T>> terms_;
};

}  // namespace

void fill(const Pattern& pattern, int rank, std::size_t first, std::size_t count, void* data) {
  with_type(pattern.dtype, [&]<class T>(T) {
    const Contribution<T> contribution(pattern, rank);
    auto* at = static_cast<char*>(data);
    for (std::size_t i = 0; i < count; ++i, at += sizeof(T)) {
      const T value = encode<T>(contribution(first + i));
      std::memcpy(at, &value, sizeof value);
    }
  });
}

uint64_t wrong_copies(const Pattern& pattern, int rank, std::size_t first, std::size_t count, const void* data) {
  return with_type(pattern.dtype, [&]<class T>(T) {
    const Contribution<T> contribution(pattern, rank);
    uint64_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) wrong += decode(element<T>(data, i)) != contribution(first + i);
    return wrong;
  });
}

uint64_t wrong_reductions(const Pattern& pattern, std::size_t first, std::size_t count, const void* data) {
  return with_type(pattern.dtype, [&]<class T>(T) {
    const Reduction<T> reduction(pattern);
    uint64_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) wrong += !reduction.accepts(first + i, decode(element<T>(data, i)));
    return wrong;
  });
}

}  // namespace ddprun::comm
