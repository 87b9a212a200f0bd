// Torch's streams as those of gpu.hpp, and what the files of the stand-in for libtorch_cuda.so share.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "gpu_graph.hpp"

namespace ddprun::fake_gpu {

inline Stream stream_of(const c10::Stream& stream) {
  return stream_of(stream.id(), stream.device_index());
}

inline Stream current_stream(c10::Device device) {
  return stream_of(c10::impl::VirtualGuardImpl(c10::kCUDA).getStream(device));
}

// A stream of the pool: its number is one that no other device's stream has.
inline std::int64_t handle_in_pool(int device, int number) {
  return 1000 * (device + 1) + number;
}

// What CUDA refuses, as Torch says it.
template <class Call>
decltype(auto) as_torch(Call&& call) {
  try {
    return call();
  } catch (const Refused& refused) {
    throw c10::AcceleratorError(
        {__func__, __FILE__, __LINE__}, static_cast<int>(refused.error),
        std::string("CUDA error: ") + refused.what() + "\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1");
  }
}

// The bytes between the tensor's first and last element, gaps included.
void access(Stream stream, const at::Tensor& tensor, bool writes, const std::string& what);

// Host memory that another owner keeps, as memory of the device: what a kernel of the CPU's returned.
c10::DataPtr adopt(c10::DataPtr memory, std::size_t bytes, c10::Device device);

// Of memory from the page-locked allocator, or a part of it.
bool is_page_locked(const void* memory);

}  // namespace ddprun::fake_gpu
