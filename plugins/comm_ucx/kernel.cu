// to = a op b in GPU memory, with the same bits as plugins/lib/reduction. NVRTC compiles this text at run time, with
// the two headers below and no others. Tests compile it for the host as well.
#include "ddprun/plugin/comm_plugin.h"
#include "reduction/float16.hpp"

namespace ddprun::reduction {

// How an element is computed: 16-bit floats as float32, rounded once for each operation.
template <class T>
struct Number {
  using Value = T;
  static Value value(T stored) { return stored; }
  static T stored(Value value) { return value; }
};
template <>
struct Number<Float16> {
  using Value = float;
  static float value(Float16 stored) { return to_float(stored); }
  static Float16 stored(float value) { return to_float16(value); }
};
template <>
struct Number<BFloat16> {
  using Value = float;
  static float value(BFloat16 stored) { return to_float(stored); }
  static BFloat16 stored(float value) { return to_bfloat16(value); }
};

// Integers are added and multiplied as unsigned ones, which wrap modulo 2^64 and so modulo smaller powers.
auto wide(auto value) {
  if constexpr (static_cast<decltype(value)>(0.5) != 0) {
    return value;
  } else {
    return static_cast<uint64_t>(value);
  }
}

struct Sum {
  static auto apply(auto a, auto b) { return static_cast<decltype(a)>(wide(a) + wide(b)); }
};
struct Product {
  static auto apply(auto a, auto b) { return static_cast<decltype(a)>(wide(a) * wide(b)); }
};
// a != a holds for a NaN: a NaN on either side is the result.
struct Min {
  static auto apply(auto a, auto b) { return a < b || a != a ? a : b; }
};
struct Max {
  static auto apply(auto a, auto b) { return a > b || a != a ? a : b; }
};

template <class T, class Op>
void reduce_elements(T* to, const T* a, const T* b, uint64_t count, int32_t ranks) {
  using N = Number<T>;
  using Value = typename N::Value;
  const uint64_t threads = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads) {
    T result = N::stored(Op::apply(N::value(a[i]), N::value(b[i])));
    if (ranks > 1) result = N::stored(N::value(result) / static_cast<Value>(ranks));
    to[i] = result;
  }
}

template <class T>
void reduce_numbers(void* to, const void* a, const void* b, uint64_t count, int32_t op, int32_t ranks) {
  auto* const into = static_cast<T*>(to);
  const auto* const first = static_cast<const T*>(a);
  const auto* const second = static_cast<const T*>(b);
  switch (op) {
    case DDPRUN_MIN: return reduce_elements<T, Min>(into, first, second, count, ranks);
    case DDPRUN_MAX: return reduce_elements<T, Max>(into, first, second, count, ranks);
    case DDPRUN_PRODUCT: return reduce_elements<T, Product>(into, first, second, count, ranks);
    default: return reduce_elements<T, Sum>(into, first, second, count, ranks);
  }
}

}  // namespace ddprun::reduction

// ranks > 1 (floating types only): divides the result by ranks. Any one-dimensional grid.
extern "C" __global__ void ddprun_reduce(void* to, const void* a, const void* b, uint64_t count, int32_t dtype,
                                         int32_t op, int32_t ranks) {
  using namespace ddprun::reduction;
  switch (dtype) {
    case DDPRUN_FLOAT16: return reduce_numbers<Float16>(to, a, b, count, op, ranks);
    case DDPRUN_BFLOAT16: return reduce_numbers<BFloat16>(to, a, b, count, op, ranks);
    case DDPRUN_FLOAT32: return reduce_numbers<float>(to, a, b, count, op, ranks);
    case DDPRUN_FLOAT64: return reduce_numbers<double>(to, a, b, count, op, ranks);
    case DDPRUN_INT8: return reduce_numbers<int8_t>(to, a, b, count, op, ranks);
    case DDPRUN_INT16: return reduce_numbers<int16_t>(to, a, b, count, op, ranks);
    case DDPRUN_INT32: return reduce_numbers<int32_t>(to, a, b, count, op, ranks);
    case DDPRUN_INT64: return reduce_numbers<int64_t>(to, a, b, count, op, ranks);
    case DDPRUN_UINT8: return reduce_numbers<uint8_t>(to, a, b, count, op, ranks);
  }
}
