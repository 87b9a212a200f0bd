#include "reduction/reduce.hpp"

#include <type_traits>

#include "reduction/float16.hpp"

namespace ddprun::reduction {
namespace {

// How a stored type is computed with: integers as unsigned ones at least as wide as int, where overflow wraps and
// nothing is promoted to a signed type; 16-bit floats as float32.
template <class T>
struct Arithmetic {
  using Wide = T;
  static Wide load(T value) { return value; }
  static T store(Wide value) { return value; }
};
template <class T>
requires std::is_integral_v<T>
struct Arithmetic<T> {
  using Wide = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
  static Wide load(T value) { return static_cast<Wide>(value); }
  static T store(Wide value) { return static_cast<T>(value); }
};
template <>
struct Arithmetic<Float16> {
  using Wide = float;
  static float load(Float16 value) { return to_float(value); }
  static Float16 store(float value) { return to_float16(value); }
};
template <>
struct Arithmetic<BFloat16> {
  using Wide = float;
  static float load(BFloat16 value) { return to_float(value); }
  static BFloat16 store(float value) { return to_bfloat16(value); }
};

struct Sum {
  template <class T>
  static T apply(T a, T b) {
    return Arithmetic<T>::store(Arithmetic<T>::load(a) + Arithmetic<T>::load(b));
  }
};
struct Product {
  template <class T>
  static T apply(T a, T b) {
    return Arithmetic<T>::store(Arithmetic<T>::load(a) * Arithmetic<T>::load(b));
  }
};

// True where a is the result of min or max, given that `better` says whether a beats b: a NaN on either side wins.
template <class T>
bool keeps(T a, bool better) {
  if constexpr (std::is_integral_v<T>) return better;
  return better | (a != a);
}
template <class T>
auto comparable(T value) {
  if constexpr (std::is_integral_v<T>)
    return value;
  else
    return Arithmetic<T>::load(value);
}

struct Min {
  template <class T>
  static T apply(T a, T b) {
    const auto x = comparable(a), y = comparable(b);
    return keeps(x, x < y) ? a : b;
  }
};
struct Max {
  template <class T>
  static T apply(T a, T b) {
    const auto x = comparable(a), y = comparable(b);
    return keeps(x, x > y) ? a : b;
  }
};

template <class T, class Op>
void reduce(void* out, const void* a, const void* b, std::size_t count) {
  auto* to = static_cast<T*>(out);
  const auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) to[i] = Op::apply(x[i], y[i]);
}

template <class T>
Reduce of_type(int32_t op) {
  switch (op) {
    case DDPRUN_SUM:
    case DDPRUN_AVG: return reduce<T, Sum>;
    case DDPRUN_MIN: return reduce<T, Min>;
    case DDPRUN_MAX: return reduce<T, Max>;
    case DDPRUN_PRODUCT: return reduce<T, Product>;
    default: return nullptr;
  }
}

using ReduceAll = void (*)(void* const* to, int to_count, const void* const* from, int from_count, std::size_t count);

template <class T, class Op>
void reduce_vectors(void* const* to, int to_count, const void* const* from, int from_count, std::size_t count) {
  using Sum = decltype(comparable(T{}));
  for (std::size_t i = 0; i < count; ++i) {
    Sum sum = comparable(static_cast<const T*>(from[0])[i]);
    for (int f = 1; f < from_count; ++f) sum = Op::apply(sum, comparable(static_cast<const T*>(from[f])[i]));
    for (int t = 0; t < to_count; ++t)
      static_cast<T*>(to[t])[i] = Arithmetic<T>::store(static_cast<typename Arithmetic<T>::Wide>(sum));
  }
}

template <class T>
ReduceAll all_of_type(int32_t op) {
  switch (op) {
    case DDPRUN_SUM:
    case DDPRUN_AVG: return reduce_vectors<T, Sum>;
    case DDPRUN_MIN: return reduce_vectors<T, Min>;
    case DDPRUN_MAX: return reduce_vectors<T, Max>;
    case DDPRUN_PRODUCT: return reduce_vectors<T, Product>;
    default: return nullptr;
  }
}

ReduceAll reduce_all_function(int32_t dtype, int32_t op) {
  switch (dtype) {
    case DDPRUN_FLOAT16: return all_of_type<Float16>(op);
    case DDPRUN_BFLOAT16: return all_of_type<BFloat16>(op);
    case DDPRUN_FLOAT32: return all_of_type<float>(op);
    case DDPRUN_FLOAT64: return all_of_type<double>(op);
    case DDPRUN_INT8: return all_of_type<int8_t>(op);
    case DDPRUN_INT16: return all_of_type<int16_t>(op);
    case DDPRUN_INT32: return all_of_type<int32_t>(op);
    case DDPRUN_INT64: return all_of_type<int64_t>(op);
    case DDPRUN_UINT8: return all_of_type<uint8_t>(op);
    default: return nullptr;
  }
}

template <class T>
void divide_all(void* data, std::size_t count, float divisor) {
  auto* values = static_cast<T*>(data);
  for (std::size_t i = 0; i < count; ++i) values[i] = Arithmetic<T>::store(Arithmetic<T>::load(values[i]) / divisor);
}

}  // namespace

Reduce reduce_function(int32_t dtype, int32_t op) {
  switch (dtype) {
    case DDPRUN_FLOAT16: return of_type<Float16>(op);
    case DDPRUN_BFLOAT16: return of_type<BFloat16>(op);
    case DDPRUN_FLOAT32: return of_type<float>(op);
    case DDPRUN_FLOAT64: return of_type<double>(op);
    case DDPRUN_INT8: return of_type<int8_t>(op);
    case DDPRUN_INT16: return of_type<int16_t>(op);
    case DDPRUN_INT32: return of_type<int32_t>(op);
    case DDPRUN_INT64: return of_type<int64_t>(op);
    case DDPRUN_UINT8: return of_type<uint8_t>(op);
    default: return nullptr;
  }
}

void reduce_all(void* const* to, int to_count, const void* const* from, int from_count, int32_t dtype, int32_t op,
                std::size_t count) {
  reduce_all_function(dtype, op)(to, to_count, from, from_count, count);
}

void divide(void* data, int32_t dtype, std::size_t count, int ranks) {
  const auto by = static_cast<float>(ranks);
  switch (dtype) {
    case DDPRUN_FLOAT16: return divide_all<Float16>(data, count, by);
    case DDPRUN_BFLOAT16: return divide_all<BFloat16>(data, count, by);
    case DDPRUN_FLOAT32: return divide_all<float>(data, count, by);
    case DDPRUN_FLOAT64: return divide_all<double>(data, count, by);
    default: return;
  }
}

}  // namespace ddprun::reduction
