// A fake libnvidia-ml.so.1: a GiB of each fake GPU of machine.hpp is in use.
#include <cstdint>

#include "machine.hpp"

namespace {

bool initialised = false;

constexpr int kUninitialised = 1;
constexpr int kNotFound = 6;

// A device is its index in the machine, plus one.
int number_of_device(const void* device) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(device)) - 1;
}

}  // namespace

extern "C" {

// DDPRUN_FAKE_NVML: the nvmlReturn_t of a library that does not fit the driver.
int nvmlInit_v2() {
  const int result = ddprun::testing::number_of("DDPRUN_FAKE_NVML", 0);
  initialised = result == 0;
  return result;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  if (!initialised) return kUninitialised;
  const int count = ddprun::testing::number_of("DDPRUN_FAKE_GPUS", 2);
  for (int gpu = 0; gpu < count; ++gpu) {
    if (ddprun::testing::fake_bus_id(gpu) != bus_id) continue;
    *device = reinterpret_cast<void*>(static_cast<std::intptr_t>(gpu + 1));
    return 0;
  }
  return kNotFound;
}

int nvmlDeviceGetMemoryInfo(const void* device, unsigned long long* memory) {
  memory[0] = ddprun::testing::fake_memory(number_of_device(device));  // total
  memory[1] = memory[0] - (1 << 30);                                   // free
  memory[2] = 1 << 30;                                                 // used
  return 0;
}
}
