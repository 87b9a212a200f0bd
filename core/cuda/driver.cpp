#include "cuda/driver.hpp"

#include <unistd.h>

#include <cstdlib>

#include "cuda/library.hpp"
#include "ddprun/error.hpp"

namespace ddprun::cuda {
namespace {

// Definitions from cuda.h.
using CUresult = int;
using CUdevice = int;
constexpr CUresult kDriverSuccess = 0;
constexpr CUresult kNoDevice = 100;  // CUDA_ERROR_NO_DEVICE
constexpr int kMajor = 75;           // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
constexpr int kMinor = 76;

struct Driver {
  CUresult (*init)(unsigned) = nullptr;
  CUresult (*version)(int*) = nullptr;
  CUresult (*count)(int*) = nullptr;
  CUresult (*device)(CUdevice*, int) = nullptr;
  CUresult (*name)(char*, int, CUdevice) = nullptr;
  CUresult (*memory)(std::size_t*, CUdevice) = nullptr;
  CUresult (*attribute)(int*, int, CUdevice) = nullptr;
  CUresult (*bus_id)(char*, int, CUdevice) = nullptr;
  CUresult (*words)(CUresult, const char**) = nullptr;
};

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ExitCode::plugin, why);
}

std::string text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// The part of a message about what restricts the GPUs that CUDA shows; empty if nothing does.
std::string visible() {
  const char* const devices = std::getenv("CUDA_VISIBLE_DEVICES");
  return devices == nullptr ? "" : std::string(" (CUDA_VISIBLE_DEVICES=") + devices + ")";
}

std::string count_text(std::size_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// "[0, 0, 0]": all ranks on the first GPU.
std::string zeros(int ranks) {
  std::string list = "[0";
  for (int rank = 1; rank < ranks; ++rank) list += ", 0";
  return list + "]";
}

Driver load() {
  const Library library("libcuda.so.1");
  if (!library.found() && driver_installed()) {
    refuse("an NVIDIA driver, but its library cannot be loaded: " + library.why() +
           " (a container needs --gpus all and NVIDIA_DRIVER_CAPABILITIES=compute,utility)");
  }
  if (!library.found())
    refuse("no NVIDIA driver on this machine: device \"cuda\" needs one, and a GPU; without, take \"cpu\"");
  Driver driver;
  library.bind(driver.init, "cuInit");
  library.bind(driver.version, "cuDriverGetVersion");
  library.bind(driver.count, "cuDeviceGetCount");
  library.bind(driver.device, "cuDeviceGet");
  library.bind(driver.name, "cuDeviceGetName");
  library.bind(driver.memory, "cuDeviceTotalMem_v2");
  library.bind(driver.attribute, "cuDeviceGetAttribute");
  library.bind(driver.bus_id, "cuDeviceGetPCIBusId");
  library.bind(driver.words, "cuGetErrorString");
  return driver;
}

void check(const Driver& driver, const char* what, CUresult result) {
  if (result == kDriverSuccess) return;
  const char* words = nullptr;
  driver.words(result, &words);
  refuse(std::string("the NVIDIA driver: ") + what + ": " + (words != nullptr ? words : "unknown error") + " (" +
         std::to_string(result) + ")");
}

// Called first: an older driver may not support the other functions.
int version_of(const Driver& driver) {
  int version = 0;
  check(driver, "its version", driver.version(&version));
  if (version < kVersion) {
    refuse("the NVIDIA driver is for CUDA " + text(version) + ", this build needs " + text(kVersion) +
           ": install a newer driver");
  }
  return version;
}

Gpu gpu_of(const Driver& driver, int ordinal) {
  CUdevice device = 0;
  char name[256] = "";
  char bus_id[32] = "";
  std::size_t memory = 0;
  Gpu gpu;
  check(driver, "a device", driver.device(&device, ordinal));
  check(driver, "a device's name", driver.name(name, sizeof name, device));
  check(driver, "a device's address", driver.bus_id(bus_id, sizeof bus_id, device));
  check(driver, "a device's memory", driver.memory(&memory, device));
  check(driver, "a device's capability", driver.attribute(&gpu.major, kMajor, device));
  check(driver, "a device's capability", driver.attribute(&gpu.minor, kMinor, device));
  gpu.name = name;
  gpu.bus_id = bus_id;
  gpu.memory_bytes = static_cast<int64_t>(memory);
  return gpu;
}

struct Found {
  int version = 0;
  std::vector<Gpu> gpus;
};

Found find() {
  const Driver driver = load();
  Found found;
  found.version = version_of(driver);
  int count = 0;
  CUresult result = driver.init(0);
  if (result == kDriverSuccess) result = driver.count(&count);
  if (result == kNoDevice || (result == kDriverSuccess && count == 0)) {
    refuse("an NVIDIA driver, but no device" + visible() + ": device \"cuda\" needs a GPU");
  }
  check(driver, "its devices", result);
  for (int ordinal = 0; ordinal < count; ++ordinal) found.gpus.push_back(gpu_of(driver, ordinal));
  return found;
}

// Computed once; if it throws, the next call tries again.
const Found& found() {
  static const Found found = find();
  return found;
}

}  // namespace

bool driver_installed() {
  for (const char* const file : {"/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/dxg"}) {
    if (access(file, F_OK) == 0) return true;
  }
  return false;
}

const std::vector<Gpu>& gpus() {
  return found().gpus;
}

std::string driver_version() {
  return text(found().version);
}

int device_of(const std::vector<int64_t>& devices, int local_rank, int local_size) {
  const std::size_t count = gpus().size();
  const std::string have = "this machine has " + count_text(count, "GPU") + visible();
  const auto place = static_cast<std::size_t>(local_rank);
  if (devices.empty()) {
    if (place < count) return local_rank;
    refuse("launch.nproc = " + std::to_string(local_size) + ", but " + have + ": at most " + count_text(count, "rank") +
           ", or name the GPU of each rank in launch.devices (" + zeros(local_size) + ": all on one)");
  }
  if (place >= devices.size()) {
    refuse("launch.devices names " + count_text(devices.size(), "GPU") +
           ", but launch.nproc = " + std::to_string(local_size) + ": name one for each rank of a node");
  }
  const int64_t device = devices[place];
  if (device < 0 || static_cast<std::size_t>(device) >= count) {
    refuse("no GPU " + std::to_string(device) + ": " + have + ", counted from 0");
  }
  return static_cast<int>(device);
}

}  // namespace ddprun::cuda
