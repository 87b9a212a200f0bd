// The arithmetic. float16 and bfloat16 are left out: C++20 has neither type. ddprun refuses what is not declared.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ddprun/collective.hpp"

namespace shm_direct {

inline constexpr uint32_t kDTypes =
    ddprun::bits(ddprun::DType::float32, ddprun::DType::float64, ddprun::DType::int8, ddprun::DType::int16,
                 ddprun::DType::int32, ddprun::DType::int64, ddprun::DType::uint8);

// Integers wrap: without a sign, and not narrower than int, to which C++ would promote them.
template <typename T, bool = std::is_integral_v<T>>
struct Arithmetic {
  using type = T;
};
template <typename T>
struct Arithmetic<T, true> {
  using type = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
};

template <typename T, typename Function>
void combine_with(T* __restrict into, const T* __restrict from, std::size_t count, Function function) {
  for (std::size_t i = 0; i < count; ++i) into[i] = function(into[i], from[i]);
}

// into becomes the reduction of into and from.
template <typename T>
void combine(T* into, const T* from, std::size_t count, ddprun::Op op) {
  using Number = typename Arithmetic<T>::type;
  const auto number = [](T value) { return static_cast<Number>(value); };
  switch (op) {
    case ddprun::Op::min: return combine_with(into, from, count, [](T a, T b) { return std::min(a, b); });
    case ddprun::Op::max: return combine_with(into, from, count, [](T a, T b) { return std::max(a, b); });
    case ddprun::Op::product:
      return combine_with(into, from, count, [=](T a, T b) { return static_cast<T>(number(a) * number(b)); });
    default: return combine_with(into, from, count, [=](T a, T b) { return static_cast<T>(number(a) + number(b)); });
  }
}

// Calls function with a value of the C++ type.
template <typename Function>
void with_type(ddprun::DType dtype, Function function) {
  switch (dtype) {
    case ddprun::DType::float64: return function(double{});
    case ddprun::DType::int8: return function(int8_t{});
    case ddprun::DType::int16: return function(int16_t{});
    case ddprun::DType::int32: return function(int32_t{});
    case ddprun::DType::int64: return function(int64_t{});
    case ddprun::DType::uint8: return function(uint8_t{});
    default: return function(float{});
  }
}

}  // namespace shm_direct
