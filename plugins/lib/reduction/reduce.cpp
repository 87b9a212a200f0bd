#include "reduction/reduce.hpp"

#include "reduction/tables.hpp"

namespace ddprun::reduction {
namespace {

const Functions& functions(int32_t dtype) {
  static const Table& fastest = *usable_tables().front();
  return fastest.of_dtype[dtype];
}

}  // namespace

Reduce reduce_function(int32_t dtype, int32_t op) {
  return functions(dtype).reduce[op];
}

void reduce_all(void* const* to, int to_count, const void* const* from, int from_count, int32_t dtype, int32_t op,
                std::size_t count) {
  functions(dtype).reduce_all[op](to, to_count, from, from_count, count);
}

void divide(void* values, int32_t dtype, std::size_t count, int ranks) {
  if (const Divide divide = functions(dtype).divide) divide(values, count, ranks);
}

}  // namespace ddprun::reduction
