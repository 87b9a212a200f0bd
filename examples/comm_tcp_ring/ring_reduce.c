/* The arithmetic. float16 and bfloat16 are missing: C11 has neither type, so each addition would be two conversions by
 * hand, and the ring would round the partial sum at every rank. ddprun refuses what is not declared. */
#include "ring.h"

/* Integers wrap, so they are added and multiplied as unsigned numbers. */
#define DEFINE_REDUCE(type, number)                                                               \
  static void reduce_##type(int32_t op, type* restrict a, const type* restrict b, size_t count) { \
    switch (op) {                                                                                 \
      case DDPRUN_MIN:                                                                            \
        for (size_t i = 0; i < count; ++i) a[i] = b[i] < a[i] ? b[i] : a[i];                      \
        break;                                                                                    \
      case DDPRUN_MAX:                                                                            \
        for (size_t i = 0; i < count; ++i) a[i] = b[i] > a[i] ? b[i] : a[i];                      \
        break;                                                                                    \
      case DDPRUN_PRODUCT:                                                                        \
        for (size_t i = 0; i < count; ++i) a[i] = (type)((number)a[i] * (number)b[i]);            \
        break;                                                                                    \
      default: /* a sum or an average */                                                          \
        for (size_t i = 0; i < count; ++i) a[i] = (type)((number)a[i] + (number)b[i]);            \
    }                                                                                             \
  }
DEFINE_REDUCE(float, float)
DEFINE_REDUCE(double, double)
DEFINE_REDUCE(int32_t, uint32_t)
DEFINE_REDUCE(int64_t, uint64_t)

void ring_reduce(int32_t dtype, int32_t op, void* into, const void* from, size_t count) {
  switch (dtype) {
    case DDPRUN_FLOAT64: reduce_double(op, into, from, count); break;
    case DDPRUN_INT32: reduce_int32_t(op, into, from, count); break;
    case DDPRUN_INT64: reduce_int64_t(op, into, from, count); break;
    default: reduce_float(op, into, from, count);
  }
}

void ring_divide(int32_t dtype, void* numbers, size_t count, int32_t by) {
  float* const floats = numbers;
  double* const doubles = numbers;
  if (dtype == DDPRUN_FLOAT32) {
    for (size_t i = 0; i < count; ++i) floats[i] /= (float)by;
  } else { /* an average has floating types only */
    for (size_t i = 0; i < count; ++i) doubles[i] /= by;
  }
}
