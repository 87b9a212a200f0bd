// Element-wise reductions of two vectors for each dtype and op of the plugin contract. No Gloo in here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ddprun/comm_plugin.h"

namespace ddprun::gloo_backend {

// out[i] = a[i] op b[i] for i < count. out may be a or b, but must not overlap them otherwise. Any thread.
//   - Integers wrap modulo 2^n.
//   - float16 and bfloat16 are computed in float32 and rounded to nearest even.
//   - min and max give a NaN where either operand is one, as sum and product do.
using ReduceFunction = void (*)(void* out, const void* a, const void* b, std::size_t count);

// DDPRUN_AVG reduces as DDPRUN_SUM; divide() follows on the complete sum.
ReduceFunction reduce_function(int32_t dtype, int32_t op);

// data[i] /= divisor, for the floating dtypes.
void divide(void* data, int32_t dtype, std::size_t count, int divisor);

}  // namespace ddprun::gloo_backend
