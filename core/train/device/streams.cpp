#include "train/device/streams.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

#include "ddprun/error.hpp"

namespace ddprun::train {
namespace {

using Guard = c10::impl::VirtualGuardImpl;

// With a LibTorch before 2.11, ddprun is built for CPUs only.
void* native_handle(const auto& guard, const c10::Stream& stream) {
  if constexpr (requires { guard.getStreamNativeHandle(stream); }) {
    return guard.getStreamNativeHandle(stream);
  } else {
    throw Error(ExitCode::plugin, "launch.device = \"cuda\" needs Torch 2.11 or later; this ddprun was built with " +
                                      std::string(TORCH_VERSION));
  }
}

}  // namespace

c10::Stream current_stream(torch::Device device) {
  return Guard(device.type()).getStream(device);
}

c10::Stream side_stream(torch::Device device, bool high_priority) {
  return Guard(device.type()).getStreamFromGlobalPool(device, high_priority);
}

void* handle(const c10::Stream& stream) {
  return native_handle(Guard(stream.device_type()), stream);
}

c10::Event timing_event(torch::Device device) {
  return c10::Event(device.type(), c10::EventFlag::BACKEND_DEFAULT);
}

}  // namespace ddprun::train
