#include "reduction/reduce.hpp"

#include "reduction/tables.hpp"

namespace ddprun::reduction {
namespace {

const Functions& functions(DType dtype) {
  static const Table& fastest = *usable_tables().front();
  return fastest.of_dtype[static_cast<std::size_t>(dtype)];
}

}  // namespace

Reduce reduce_function(DType dtype, Op op) {
  return functions(dtype).reduce[static_cast<std::size_t>(op)];
}

void reduce_all(void* const* to, int to_count, const void* const* from, int from_count, DType dtype, Op op,
                std::size_t count) {
  functions(dtype).reduce_all[static_cast<std::size_t>(op)](to, to_count, from, from_count, count);
}

void divide(void* values, DType dtype, std::size_t count, int ranks) {
  if (const Divide divide = functions(dtype).divide) divide(values, count, ranks);
}

}  // namespace ddprun::reduction
