// What a GPU does at a moment, as NVIDIA's management library (NVML) tells it: of the whole GPU, whoever uses it.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

namespace ddprun::cuda {

// A field that this GPU or its driver does not tell stays absent: -1, or NaN.
struct GpuSample {
  int utilization = -1;      // percent of the time since the last look (at most a second) in which a kernel ran
  int64_t memory_used = -1;  // bytes, of all processes
  int temperature = -1;      // degrees Celsius
  double power = std::numeric_limits<double>::quiet_NaN();  // watts
};

class Nvml {
 public:
  // Loads libnvidia-ml.so.1. A machine without it is no error: a line of the log says so once in a process, and every
  // sample is absent.
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Of the GPU with this address (Gpu::bus_id). Takes about a millisecond. Any thread.
  GpuSample sample(const std::string& bus_id) const;

 private:
  struct Functions;
  static std::unique_ptr<const Functions> load();

  std::unique_ptr<const Functions> functions_;  // null where there is no NVML
};

}  // namespace ddprun::cuda
