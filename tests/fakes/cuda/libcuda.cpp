// A fake libcuda.so.1: reports the fake GPUs of machine.hpp.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "machine.hpp"

namespace {

bool initialised = false;

constexpr int kNotInitialised = 3;
constexpr int kNoDevice = 100;
constexpr int kInvalidDevice = 101;

// A device is its index in the machine.
bool exists(int device) {
  const auto gpus = ddprun::testing::fake_gpus();
  return std::find(gpus.begin(), gpus.end(), device) != gpus.end();
}

void copy(char* to, int size, const std::string& text) {
  std::strncpy(to, text.c_str(), static_cast<std::size_t>(size) - 1);
  to[size - 1] = '\0';
}

}  // namespace

extern "C" {

// DDPRUN_FAKE_CUINIT: the CUresult of a broken driver; 0: of a driver that accepts a machine without devices.
int cuInit(unsigned) {
  const int usual = ddprun::testing::fake_gpus().empty() ? kNoDevice : 0;
  if (const int result = ddprun::testing::number_of("DDPRUN_FAKE_CUINIT", usual); result != 0) return result;
  initialised = true;
  return 0;
}

int cuDriverGetVersion(int* version) {
  *version = ddprun::testing::fake_driver();
  return 0;
}

int cuDeviceGetCount(int* count) {
  if (!initialised) return kNotInitialised;
  *count = static_cast<int>(ddprun::testing::fake_gpus().size());
  return 0;
}

int cuDeviceGet(int* device, int ordinal) {
  const auto gpus = ddprun::testing::fake_gpus();
  if (!initialised) return kNotInitialised;
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= gpus.size()) return kInvalidDevice;
  *device = gpus[static_cast<std::size_t>(ordinal)];
  return 0;
}

int cuDeviceGetName(char* name, int size, int device) {
  if (!exists(device)) return kInvalidDevice;
  copy(name, size, "Fake GPU " + std::to_string(device));
  return 0;
}

int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  if (!exists(device)) return kInvalidDevice;
  *bytes = ddprun::testing::fake_memory(device);
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (!exists(device)) return kInvalidDevice;
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : -1;  // the compute capability, major and minor
  return 0;
}

int cuDeviceGetPCIBusId(char* id, int size, int device) {
  if (!exists(device)) return kInvalidDevice;
  copy(id, size, ddprun::testing::fake_bus_id(device));
  return 0;
}

int cuGetErrorString(int result, const char** words) {
  *words = result == 999 ? "unknown error" : result == 804 ? "forward compatibility was attempted" : nullptr;
  return *words == nullptr ? 1 : 0;
}
}
