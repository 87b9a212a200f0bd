#include "kernels.hpp"

#include <cstdint>

#include "ddprun/plugin/comm_plugin.hpp"

// Definitions that a GPU compiler provides.
#define __global__
namespace {
struct Index {
  unsigned x = 0;
};
thread_local Index gridDim, blockDim, blockIdx, threadIdx;
}  // namespace

#include "plugins/comm_ucx/kernel.cu"

namespace ddprun::testing {
namespace {

template <class T>
T argument(void** parameters, int number) {
  return *static_cast<T*>(parameters[number]);
}

}  // namespace

ReduceArguments ReduceArguments::of(void** parameters) {
  return {argument<void*>(parameters, 0),    argument<const void*>(parameters, 1), argument<const void*>(parameters, 2),
          argument<uint64_t>(parameters, 3), argument<int32_t>(parameters, 4),     argument<int32_t>(parameters, 5),
          argument<int32_t>(parameters, 6)};
}

uint64_t ReduceArguments::bytes() const {
  return count * size_of(static_cast<DType>(dtype));
}

void run_reduce(unsigned blocks, unsigned threads, const ReduceArguments& call) {
  gridDim.x = blocks;
  blockDim.x = threads;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
    for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) {
      ddprun_reduce(call.to, call.a, call.b, call.count, call.dtype, call.op, call.ranks);
    }
  }
}

}  // namespace ddprun::testing
