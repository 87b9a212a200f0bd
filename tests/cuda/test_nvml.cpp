#include <doctest/doctest.h>

#include "cuda/nvml.hpp"
#include "fake_machine.hpp"

namespace ddprun {
namespace {

using testing::function;
using testing::Machine;
using testing::run_with;

std::string text(const cuda::GpuSample& sample) {
  return std::to_string(sample.utilization) + " %, " + std::to_string(sample.memory_used) + " bytes, " +
         std::to_string(sample.temperature) + " C, " + std::to_string(sample.power) + " W";
}

Machine with_nvml(std::map<std::string, std::string> variables = {}) {
  return {{DDPRUN_FAKE_NVML}, std::move(variables)};
}

TEST_CASE("a sample has the figures of the GPU with this address") {
  CHECK(run_with(with_nvml(), [] { return text(cuda::Nvml().sample("0000:01:00.0")); }) ==
        "90 %, 1073741824 bytes, 40 C, 123.500000 W");
}

TEST_CASE("a figure that a GPU does not report is absent, and the others are reported") {
  CHECK(run_with(with_nvml(), [] { return text(cuda::Nvml().sample("0000:02:00.0")); }) ==
        "91 %, 1073741824 bytes, 41 C, nan W");
}

TEST_CASE("with an unknown GPU, a broken NVML or no NVML, all figures are absent") {
  const auto sample = [] { return text(cuda::Nvml().sample("0000:07:00.0")); };
  CHECK(run_with(with_nvml(), sample) == "-1 %, -1 bytes, -1 C, nan W");
  CHECK(run_with(with_nvml({{"DDPRUN_FAKE_NVML", "18"}}), [] { return text(cuda::Nvml().sample("0000:01:00.0")); }) ==
        "-1 %, -1 bytes, -1 C, nan W");
  CHECK(run_with({}, sample) == "-1 %, -1 bytes, -1 C, nan W");
}

TEST_CASE("several Nvml objects work one after another: each opens and closes NVML") {
  CHECK(run_with(with_nvml(), [] {
          { const cuda::Nvml first; }
          return text(cuda::Nvml().sample("0000:01:00.0"));
        }) == "90 %, 1073741824 bytes, 40 C, 123.500000 W");
}

TEST_CASE("NVML is closed after its last use") {
  CHECK(run_with(with_nvml(), [] {
          { const cuda::Nvml nvml; }
          void* device = nullptr;
          const int uninitialised = function<int(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2")("", &device);
          return std::to_string(uninitialised);
        }) == "1");
}

}  // namespace
}  // namespace ddprun
