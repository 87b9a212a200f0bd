// For tests of the fake CUDA under Torch: loads it before the first query for CUDA, because Torch keeps the first
// answer.
#pragma once

#include "support/torch_test.hpp"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <stdexcept>

#include "gpu.hpp"

namespace ddprun::fake_gpu {

inline const bool is_loaded = [] {
  if (dlopen(DDPRUN_FAKE_TORCH_CUDA, RTLD_NOW | RTLD_GLOBAL) == nullptr) throw std::runtime_error(dlerror());
  return true;
}();

inline const torch::Device kGpu{torch::kCUDA, 0};

inline c10::impl::VirtualGuardImpl guard() {
  return c10::impl::VirtualGuardImpl(torch::kCUDA);
}
inline c10::Stream current() {
  return guard().getStream(kGpu);
}
inline c10::Stream another() {
  return guard().getStreamFromGlobalPool(kGpu);
}
inline c10::Event event(bool timed = false) {
  return c10::Event(torch::kCUDA, timed ? c10::EventFlag::BACKEND_DEFAULT : c10::EventFlag::PYTORCH_DEFAULT);
}

}  // namespace ddprun::fake_gpu
