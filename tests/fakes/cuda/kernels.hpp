// Runs the plugins' GPU kernels on the CPU: the fake driver's cuLaunchKernel.
#pragma once

#include <cstdint>

namespace ddprun::testing {

// The arguments of plugins/comm_ucx/kernel.cu.
struct ReduceArguments {
  void* to;
  const void* a;
  const void* b;
  uint64_t count;
  int32_t dtype;
  int32_t op;
  int32_t ranks;

  // As for cuLaunchKernel: a pointer to each.
  static ReduceArguments of(void** parameters);
  // Of a vector, in bytes.
  uint64_t bytes() const;
};

// Every thread of the grid, one after the other.
void run_reduce(unsigned blocks, unsigned threads, const ReduceArguments& arguments);

}  // namespace ddprun::testing
