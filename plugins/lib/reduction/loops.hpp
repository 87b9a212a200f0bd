// The loops behind tables.hpp, on vectors as wide as the instruction set's. Each source file that includes this
// compiles them for its own instruction set, hence the unnamed namespace: the linker must not exchange them.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "reduction/float16.hpp"
#include "reduction/tables.hpp"

namespace ddprun::reduction {
namespace {

template <class Element, std::size_t bytes>
struct VectorOf {
  typedef Element Type __attribute__((vector_size(bytes)));
};
template <class Element, std::size_t bytes>
using Vector = typename VectorOf<Element, bytes>::Type;

// An instruction set is a struct with a name, the bytes of its vectors, and how it converts float16: see plain.cpp.
//
// 16-bit floats are computed as float32: two vectors for one in memory. No code here depends on which of the two holds
// an element, so each set uses the cheapest split: even and odd elements, or the first and the second half.
template <std::size_t bytes>
struct Widened {
  Vector<float, bytes> first, second;
};

template <std::size_t bytes>
struct PortableFloat16 {
  using Floats = Vector<float, bytes>;
  using Bits = Vector<uint32_t, bytes>;
  static Widened<bytes> widen(Bits pairs) {
    return {floats_of_float16<Floats>(pairs & 0xffffu), floats_of_float16<Floats>(pairs >> 16)};
  }
  static Bits narrow(const Widened<bytes>& values) {
    return float16_of_floats<Bits>(values.first) | float16_of_floats<Bits>(values.second) << 16;
  }
};
template <std::size_t bytes>
struct PortableBFloat16 {
  using Floats = Vector<float, bytes>;
  using Bits = Vector<uint32_t, bytes>;
  static Widened<bytes> widen(Bits pairs) {
    return {std::bit_cast<Floats>(pairs << 16), std::bit_cast<Floats>(pairs & 0xffff0000u)};
  }
  static Bits narrow(const Widened<bytes>& values) {
    return rounded_to_bfloat16<Bits>(values.first) >> 16 | (rounded_to_bfloat16<Bits>(values.second) & 0xffff0000u);
  }
};

// How elements of T are computed: as `Values`; memory has them as `Stored`.
template <class T, class Set>
struct Lanes {
  using Values = Vector<T, Set::kBytes>;
  using Stored = Values;
  static Values widen(Stored stored) { return stored; }
  static Stored narrow(Values values) { return values; }
};
template <class Conversion, class Set>
struct SixteenBitLanes : Conversion {
  using Values = Widened<Set::kBytes>;
  using Stored = Vector<uint32_t, Set::kBytes>;
};
template <class Set>
struct Lanes<Float16, Set> : SixteenBitLanes<typename Set::Float16Conversion, Set> {};
template <class Set>
struct Lanes<BFloat16, Set> : SixteenBitLanes<PortableBFloat16<Set::kBytes>, Set> {};

// Signed integers are added and multiplied as unsigned ones, where overflow wraps.
template <class V>
auto wrapping(V values) {
  using Element = std::remove_cvref_t<decltype(values[0])>;
  if constexpr (std::is_integral_v<Element>)
    return std::bit_cast<Vector<std::make_unsigned_t<Element>, sizeof(V)>>(values);
  else
    return values;
}

struct Sum {
  static auto apply(auto a, auto b) { return std::bit_cast<decltype(a)>(wrapping(a) + wrapping(b)); }
};
struct Product {
  static auto apply(auto a, auto b) { return std::bit_cast<decltype(a)>(wrapping(a) * wrapping(b)); }
};
// a != a holds for a NaN: a NaN on either side is the result.
struct Min {
  static auto apply(auto a, auto b) { return ((a < b) | (a != a)) ? a : b; }
};
struct Max {
  static auto apply(auto a, auto b) { return ((a > b) | (a != a)) ? a : b; }
};
struct Quotient {
  static auto apply(auto values, auto divisor) { return values / divisor; }
};

template <class Op, class V, class B>
V combine(V a, B b) {
  return Op::apply(a, b);
}
template <class Op, std::size_t bytes>
Widened<bytes> combine(Widened<bytes> a, Widened<bytes> b) {
  return {Op::apply(a.first, b.first), Op::apply(a.second, b.second)};
}
template <class Op, std::size_t bytes>
Widened<bytes> combine(Widened<bytes> a, float b) {
  return {Op::apply(a.first, b), Op::apply(a.second, b)};
}

// Vectors at any address; the last one may be incomplete, and is filled up with zeros.
template <class T, class Set>
struct Memory {
  using L = Lanes<T, Set>;
  using Values = typename L::Values;
  static constexpr std::size_t kLanes = sizeof(typename L::Stored) / sizeof(T);

  static Values load(const void* vector, std::size_t at) {
    typename L::Stored stored;
    std::memcpy(&stored, static_cast<const char*>(vector) + at * sizeof(T), sizeof stored);
    return L::widen(stored);
  }
  static void store(void* vector, std::size_t at, Values values) {
    const auto stored = L::narrow(values);
    std::memcpy(static_cast<char*>(vector) + at * sizeof(T), &stored, sizeof stored);
  }
  static Values load_some(const void* vector, std::size_t at, std::size_t count) {
    typename L::Stored stored = {};
    std::memcpy(&stored, static_cast<const char*>(vector) + at * sizeof(T), count * sizeof(T));
    return L::widen(stored);
  }
  static void store_some(void* vector, std::size_t at, std::size_t count, Values values) {
    const auto stored = L::narrow(values);
    std::memcpy(static_cast<char*>(vector) + at * sizeof(T), &stored, count * sizeof(T));
  }
};

// load(0) op load(1) op ... in the order of reduce_all. `sums` are those of complete subtrees, larger ones first: a
// binary counter of pairs.
template <class Op, class Load>
[[gnu::always_inline]] inline auto reduce_tree(int count, Load&& load) {
  auto sum = load(0);
  if (count > 1) sum = combine<Op>(sum, load(1));
  if (count <= 2) return sum;
  decltype(sum) sums[31];
  int kept = 0;
  for (int pair = 1; 2 * pair < count; ++pair) {
    sums[kept++] = sum;
    sum = load(2 * pair);
    if (2 * pair + 1 < count) sum = combine<Op>(sum, load(2 * pair + 1));
    for (int level = pair; level % 2 == 1; level /= 2) sum = combine<Op>(sums[--kept], sum);
  }
  while (kept > 0) sum = combine<Op>(sums[--kept], sum);
  return sum;
}

// Four vectors at a time stay in registers from the first source to the last target: each byte is read once and written
// once, and the loops over sources and targets cost little.
template <class T, class Op, class Set>
[[gnu::always_inline]] inline void reduce_loop(void* const* to, int to_count, const void* const* from, int from_count,
                                               std::size_t count) {
  using M = Memory<T, Set>;
  constexpr std::size_t n = M::kLanes;
  const auto sum_at = [&](std::size_t at) __attribute__((always_inline)) {
    return reduce_tree<Op>(
        from_count, [&](int f) __attribute__((always_inline)) { return M::load(from[f], at); });
  };
  std::size_t i = 0;
  for (; i + 4 * n <= count; i += 4 * n) {
    const auto a = sum_at(i), b = sum_at(i + n), c = sum_at(i + 2 * n), d = sum_at(i + 3 * n);
    for (int t = 0; t < to_count; ++t) {
      M::store(to[t], i, a);
      M::store(to[t], i + n, b);
      M::store(to[t], i + 2 * n, c);
      M::store(to[t], i + 3 * n, d);
    }
  }
  for (; i < count; i += n) {
    const std::size_t rest = std::min(count - i, n);
    const auto sum = reduce_tree<Op>(from_count, [&](int f) { return M::load_some(from[f], i, rest); });
    for (int t = 0; t < to_count; ++t) M::store_some(to[t], i, rest, sum);
  }
}

template <class T, class Op, class Set>
void reduce_two(void* to, const void* a, const void* b, std::size_t count) {
  const void* const from[] = {a, b};
  reduce_loop<T, Op, Set>(&to, 1, from, 2, count);
}

template <class T, class Op, class Set>
void reduce_many(void* const* to, int to_count, const void* const* from, int from_count, std::size_t count) {
  switch (from_count) {  // a number that is known keeps all sums in registers
    case 1: return reduce_loop<T, Op, Set>(to, to_count, from, 1, count);
    case 2: return reduce_loop<T, Op, Set>(to, to_count, from, 2, count);
    case 4: return reduce_loop<T, Op, Set>(to, to_count, from, 4, count);
    default: return reduce_loop<T, Op, Set>(to, to_count, from, from_count, count);
  }
}

template <class T, class Set>
void divide_vector(void* values, std::size_t count, int ranks) {
  using M = Memory<T, Set>;
  using Divisor = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const auto divisor = static_cast<Divisor>(ranks);
  std::size_t i = 0;
  for (; i + M::kLanes <= count; i += M::kLanes) M::store(values, i, combine<Quotient>(M::load(values, i), divisor));
  if (i == count) return;
  M::store_some(values, i, count - i, combine<Quotient>(M::load_some(values, i, count - i), divisor));
}

template <class T, class Op, class Set>
constexpr void set_op(Functions& functions, int op) {
  functions.reduce[op] = reduce_two<T, Op, Set>;
  functions.reduce_all[op] = reduce_many<T, Op, Set>;
}

template <class T, class Set>
constexpr Functions functions_of() {
  Functions functions = {};
  set_op<T, Sum, Set>(functions, DDPRUN_SUM);
  set_op<T, Sum, Set>(functions, DDPRUN_AVG);
  set_op<T, Min, Set>(functions, DDPRUN_MIN);
  set_op<T, Max, Set>(functions, DDPRUN_MAX);
  set_op<T, Product, Set>(functions, DDPRUN_PRODUCT);
  if constexpr (!std::is_integral_v<T>) functions.divide = divide_vector<T, Set>;
  return functions;
}

template <class Set>
constexpr Table table_of() {
  Table table = {Set::kName, {}};
  table.of_dtype[DDPRUN_FLOAT16] = functions_of<Float16, Set>();
  table.of_dtype[DDPRUN_BFLOAT16] = functions_of<BFloat16, Set>();
  table.of_dtype[DDPRUN_FLOAT32] = functions_of<float, Set>();
  table.of_dtype[DDPRUN_FLOAT64] = functions_of<double, Set>();
  table.of_dtype[DDPRUN_INT8] = functions_of<int8_t, Set>();
  table.of_dtype[DDPRUN_INT16] = functions_of<int16_t, Set>();
  table.of_dtype[DDPRUN_INT32] = functions_of<int32_t, Set>();
  table.of_dtype[DDPRUN_INT64] = functions_of<int64_t, Set>();
  table.of_dtype[DDPRUN_UINT8] = functions_of<uint8_t, Set>();
  return table;
}

}  // namespace
}  // namespace ddprun::reduction
