// The current load of a GPU from NVIDIA's management library (NVML): of the whole GPU with all its processes.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

namespace ddprun::cuda {

// Values that this GPU or its driver does not report are absent: -1, or NaN.
struct GpuSample {
  int utilization = -1;      // percent of the time since the last sample (at most a second) in which a kernel ran
  int64_t memory_used = -1;  // bytes, of all processes
  int temperature = -1;      // degrees Celsius
  double power = std::numeric_limits<double>::quiet_NaN();  // watts
};

class Nvml {
 public:
  // Loads libnvidia-ml.so.1. Without it, all samples are absent; this is not an error, but is logged once per process.
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Of the GPU with this address (Gpu::bus_id). Takes about a millisecond. Thread-safe.
  GpuSample sample(const std::string& bus_id) const;

 private:
  struct Functions;
  static std::unique_ptr<const Functions> load();

  std::unique_ptr<const Functions> functions_;  // null without NVML
};

}  // namespace ddprun::cuda
