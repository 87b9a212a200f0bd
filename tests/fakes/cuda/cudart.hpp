// Shared by the parts of the fake runtime.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "gpu.hpp"

namespace ddprun::fake_cudart {

// Returns the error and makes it the thread's last one.
cudaError_t failed(cudaError_t error);
// The same for a race that gpu.hpp detects: an illegal access, with its message.
cudaError_t failed(const fake_gpu::Race& race);

// Handles are small numbers, so that a test can distinguish them.
template <class Handle>
std::int64_t number_of(Handle handle) {
  return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(handle));
}

inline fake_gpu::Stream stream_of(cudaStream_t stream) {
  return fake_gpu::stream_of(number_of(stream), fake_gpu::current_device());
}

template <class Call>
cudaError_t answer(Call call) try {
  call();
  return cudaSuccess;
} catch (const fake_gpu::Race& found) {
  return failed(found);
}

}  // namespace ddprun::fake_cudart
