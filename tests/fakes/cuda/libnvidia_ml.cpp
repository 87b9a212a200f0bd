// A fake libnvidia-ml.so.1: each fake GPU of machine.hpp has different figures, which depend on its number. The second
// one has no power meter.
#include <cstdint>

#include "machine.hpp"

namespace {

bool initialised = false;

constexpr int kUninitialised = 1;
constexpr int kNotSupported = 3;
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
int nvmlShutdown() {
  initialised = false;
  return 0;
}
const char* nvmlErrorString(int result) {
  return result == 18 ? "RM has detected an NVML/RM version mismatch." : "Unknown Error";
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

int nvmlDeviceGetUtilizationRates(const void* device, unsigned* rates) {
  rates[0] = 90 + static_cast<unsigned>(number_of_device(device));
  rates[1] = 50;
  return 0;
}
int nvmlDeviceGetMemoryInfo(const void* device, unsigned long long* memory) {
  memory[0] = ddprun::testing::fake_memory(number_of_device(device));  // total
  memory[1] = memory[0] - (1 << 30);                                   // free
  memory[2] = 1 << 30;                                                 // used
  return 0;
}
int nvmlDeviceGetTemperature(const void* device, int, unsigned* celsius) {
  *celsius = 40 + static_cast<unsigned>(number_of_device(device));
  return 0;
}
int nvmlDeviceGetPowerUsage(const void* device, unsigned* milliwatts) {
  if (number_of_device(device) == 1) return kNotSupported;
  *milliwatts = 123500;
  return 0;
}
}
