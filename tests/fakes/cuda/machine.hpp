// The fake machine of NVIDIA's fake libraries. The environment describes it, so that all processes of a program see the
// same machine.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace ddprun::testing {

inline int number_of(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

// The CUDA version of the driver, 13000 for 13.0.
inline int fake_driver() {
  return number_of("DDPRUN_FAKE_DRIVER", 13000);
}

// The GPUs that a process sees with its CUDA_VISIBLE_DEVICES (only existing numbers), in CUDA's order. DDPRUN_FAKE_GPUS
// is the number of GPUs of the machine.
inline std::vector<int> fake_gpus() {
  const int count = number_of("DDPRUN_FAKE_GPUS", 2);
  std::vector<int> gpus;
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) {
    for (int gpu = 0; gpu < count; ++gpu) gpus.push_back(gpu);
    return gpus;
  }
  std::istringstream list(visible);
  for (std::string gpu; std::getline(list, gpu, ',') && std::atoi(gpu.c_str()) < count;) {
    gpus.push_back(std::atoi(gpu.c_str()));
  }
  return gpus;
}

// Memory of the machine's GPU `gpu` in bytes. DDPRUN_FAKE_GPU_MIB is the memory of the first one.
inline std::size_t fake_memory(int gpu) {
  return static_cast<std::size_t>(gpu + 1) * static_cast<std::size_t>(number_of("DDPRUN_FAKE_GPU_MIB", 8192)) << 20;
}

// The bus address of the machine's GPU `gpu`.
inline std::string fake_bus_id(int gpu) {
  return "0000:0" + std::to_string(gpu + 1) + ":00.0";
}

}  // namespace ddprun::testing
