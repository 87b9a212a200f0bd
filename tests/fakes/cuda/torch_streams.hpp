// Torch's streams as streams of gpu.hpp, and code shared by the files of the fake libtorch_cuda.so.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "gpu.hpp"

namespace ddprun::fake_gpu {

inline Stream stream_of(const c10::Stream& stream) {
  return stream_of(stream.id(), stream.device_index());
}

inline Stream current_stream(c10::Device device) {
  return stream_of(c10::impl::VirtualGuardImpl(c10::kCUDA).getStream(device));
}

// A stream of the pool: its number is unique among all devices.
inline std::int64_t handle_in_pool(int device, int number) {
  return 1000 * (device + 1) + number;
}

// The bytes between the tensor's first and last element, gaps included.
void access(Stream stream, const at::Tensor& tensor, bool writes, const std::string& what);

// Host memory of another owner, such as the result of a CPU kernel, as device memory.
c10::DataPtr adopt(c10::DataPtr memory, std::size_t bytes, c10::Device device);

// True for memory from the page-locked allocator, or a part of it.
bool is_page_locked(const void* memory);

}  // namespace ddprun::fake_gpu
