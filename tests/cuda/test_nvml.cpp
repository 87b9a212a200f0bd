#include <doctest/doctest.h>

#include "cuda/nvml.hpp"
#include "pretend.hpp"

namespace ddprun {
namespace {

using testing::function;
using testing::Machine;
using testing::told;

std::string text(const cuda::GpuSample& sample) {
  return std::to_string(sample.utilization) + " %, " + std::to_string(sample.memory_used) + " bytes, " +
         std::to_string(sample.temperature) + " C, " + std::to_string(sample.power) + " W";
}

Machine with_nvml(std::map<std::string, std::string> variables = {}) {
  return {{DDPRUN_FAKE_NVML}, std::move(variables)};
}

TEST_CASE("a sample tells what the GPU with this address does") {
  CHECK(told(with_nvml(), [] { return text(cuda::Nvml().sample("0000:01:00.0")); }) ==
        "90 %, 1073741824 bytes, 40 C, 123.500000 W");
}

TEST_CASE("what a GPU does not tell stays absent, and the rest is told") {
  CHECK(told(with_nvml(), [] { return text(cuda::Nvml().sample("0000:02:00.0")); }) ==
        "91 %, 1073741824 bytes, 41 C, nan W");
}

TEST_CASE("a GPU that NVML does not know, an NVML that does not work, and a machine without one: all is absent") {
  const auto sample = [] { return text(cuda::Nvml().sample("0000:07:00.0")); };
  CHECK(told(with_nvml(), sample) == "-1 %, -1 bytes, -1 C, nan W");
  CHECK(told(with_nvml({{"DDPRUN_FAKE_NVML", "18"}}), [] { return text(cuda::Nvml().sample("0000:01:00.0")); }) ==
        "-1 %, -1 bytes, -1 C, nan W");
  CHECK(told({}, sample) == "-1 %, -1 bytes, -1 C, nan W");
}

TEST_CASE("one NVML after another works: each opens and closes it for itself") {
  CHECK(told(with_nvml(), [] {
          { const cuda::Nvml first; }
          return text(cuda::Nvml().sample("0000:01:00.0"));
        }) == "90 %, 1073741824 bytes, 40 C, 123.500000 W");
}

TEST_CASE("an NVML that is not used any more is closed") {
  CHECK(told(with_nvml(), [] {
          { const cuda::Nvml nvml; }
          void* device = nullptr;
          const int uninitialised = function<int(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2")("", &device);
          return std::to_string(uninitialised);
        }) == "1");
}

}  // namespace
}  // namespace ddprun
