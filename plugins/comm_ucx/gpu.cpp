#include "gpu.hpp"

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::ucx_backend {

Gpu::Gpu(int ordinal) {
  check(driver().device(&device_, ordinal), ("device " + std::to_string(ordinal)).c_str());
  check(driver().retain(&context_, device_), "the device's context");
}

std::string Gpu::architecture() const {
  int major = 0, minor = 0;
  check(driver().attribute(&major, kComputeMajor, device_), "the device's compute capability");
  check(driver().attribute(&minor, kComputeMinor, device_), "the device's compute capability");
  return "sm_" + std::to_string(major) + std::to_string(minor);
}

OnGpu::OnGpu(const Gpu* gpu) noexcept : entered_(gpu != nullptr && driver().push(gpu->context()) == kCudaSuccess) {}

OnGpu::~OnGpu() {
  void* left = nullptr;
  if (entered_) driver().pop(&left);
}

}  // namespace ddprun::ucx_backend
