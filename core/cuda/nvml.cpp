#include "cuda/nvml.hpp"

#include <atomic>

#include "base/log.hpp"
#include "cuda/library.hpp"
#include "ddprun/error.hpp"

namespace ddprun::cuda {
namespace {

constexpr int kNvmlSuccess = 0;
constexpr int kCore = 0;  // NVML_TEMPERATURE_GPU

void log_once(const std::string& why) {
  static std::atomic<bool> reported{false};
  if (!reported.exchange(true)) log::info("no utilization, temperature and power of GPUs in the records: " + why);
}

}  // namespace

// Types and functions of nvml.h.
struct Nvml::Functions {
  using Device = struct nvmlDevice_st*;
  struct Utilization {
    unsigned gpu, memory;
  };
  struct Memory {
    unsigned long long total, free, used;
  };

  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*device)(const char*, Device*) = nullptr;
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  int (*temperature)(Device, int, unsigned*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;  // milliwatts
  const char* (*error_string)(int) = nullptr;

  explicit Functions(const Library& library) {
    library.bind(init, "nvmlInit_v2");
    library.bind(shutdown, "nvmlShutdown");
    library.bind(device, "nvmlDeviceGetHandleByPciBusId_v2");
    library.bind(utilization, "nvmlDeviceGetUtilizationRates");
    library.bind(memory, "nvmlDeviceGetMemoryInfo");
    library.bind(temperature, "nvmlDeviceGetTemperature");
    library.bind(power, "nvmlDeviceGetPowerUsage");
    library.bind(error_string, "nvmlErrorString");
  }
};

std::unique_ptr<const Nvml::Functions> Nvml::load() try {
  const Library library("libnvidia-ml.so.1");
  if (!library.found()) throw Error(ExitCode::plugin, library.why());
  auto functions = std::make_unique<const Functions>(library);
  const int result = functions->init();
  if (result != kNvmlSuccess) throw Error(ExitCode::plugin, std::string("NVML: ") + functions->error_string(result));
  return functions;
} catch (const Error& error) {
  log_once(error.what());
  return nullptr;
}

Nvml::Nvml() : functions_(load()) {}

Nvml::~Nvml() {
  if (functions_ != nullptr) functions_->shutdown();
}

GpuSample Nvml::sample(const std::string& bus_id) const {
  GpuSample sample;
  Functions::Device device = nullptr;
  if (functions_ == nullptr || functions_->device(bus_id.c_str(), &device) != kNvmlSuccess) return sample;
  Functions::Utilization utilization{};
  Functions::Memory memory{};
  unsigned temperature = 0, milliwatts = 0;
  if (functions_->utilization(device, &utilization) == kNvmlSuccess) {
    sample.utilization = static_cast<int>(utilization.gpu);
  }
  if (functions_->memory(device, &memory) == kNvmlSuccess) sample.memory_used = static_cast<int64_t>(memory.used);
  if (functions_->temperature(device, kCore, &temperature) == kNvmlSuccess) {
    sample.temperature = static_cast<int>(temperature);
  }
  if (functions_->power(device, &milliwatts) == kNvmlSuccess) sample.power = milliwatts / 1000.0;
  return sample;
}

}  // namespace ddprun::cuda
