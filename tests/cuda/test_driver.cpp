#include <doctest/doctest.h>

#include "cuda/driver.hpp"
#include "fake_machine.hpp"

namespace ddprun {
namespace {

using testing::error_of;
using testing::Machine;
using testing::run_with;

Machine with_driver(std::map<std::string, std::string> variables = {}) {
  return {{DDPRUN_FAKE_LIBCUDA}, std::move(variables)};
}

std::string listed() {
  std::string text;
  for (const cuda::Gpu& gpu : cuda::gpus()) {
    text += gpu.name + ", " + gpu.bus_id + ", " + std::to_string(gpu.memory_bytes >> 30) + " GiB, " +
            std::to_string(gpu.major) + "." + std::to_string(gpu.minor) + "\n";
  }
  return text;
}

std::string error_of_gpus() {
  return error_of([] { cuda::gpus(); });
}

TEST_CASE("the GPUs of a machine, as the driver reports them") {
  CHECK(run_with(with_driver(), listed) ==
        "Fake GPU 0, 0000:01:00.0, 8 GiB, 9.0\n"
        "Fake GPU 1, 0000:02:00.0, 16 GiB, 9.0\n");
  CHECK(run_with(with_driver({{"DDPRUN_FAKE_DRIVER", "13020"}}), cuda::driver_version) == "13.2");
}

TEST_CASE("CUDA_VISIBLE_DEVICES selects and orders the GPUs") {
  CHECK(run_with(with_driver({{"CUDA_VISIBLE_DEVICES", "1,0"}}), listed) ==
        "Fake GPU 1, 0000:02:00.0, 16 GiB, 9.0\n"
        "Fake GPU 0, 0000:01:00.0, 8 GiB, 9.0\n");
}

TEST_CASE("a missing GPU or driver is one line, with exit code 3") {
  if (!cuda::driver_installed()) {
    CHECK(run_with({}, error_of_gpus) ==
          "3: no NVIDIA driver on this machine: device \"cuda\" needs one, and a GPU; without, take \"cpu\"");
  }
  CHECK(run_with(with_driver({{"DDPRUN_FAKE_DRIVER", "12080"}}), error_of_gpus) ==
        "3: the NVIDIA driver is for CUDA 12.8, this build needs 13.0: install a newer driver");
  CHECK(run_with(with_driver({{"DDPRUN_FAKE_GPUS", "0"}}), error_of_gpus) ==
        "3: an NVIDIA driver, but no device: device \"cuda\" needs a GPU");
  CHECK(run_with(with_driver({{"DDPRUN_FAKE_GPUS", "0"}, {"DDPRUN_FAKE_CUINIT", "0"}}), error_of_gpus) ==
        "3: an NVIDIA driver, but no device: device \"cuda\" needs a GPU");
  CHECK(run_with(with_driver({{"CUDA_VISIBLE_DEVICES", ""}}), error_of_gpus) ==
        "3: an NVIDIA driver, but no device (CUDA_VISIBLE_DEVICES=): device \"cuda\" needs a GPU");
  CHECK(run_with(with_driver({{"DDPRUN_FAKE_CUINIT", "999"}}), error_of_gpus) ==
        "3: the NVIDIA driver: its devices: unknown error (999)");
  CHECK(run_with(with_driver({{"DDPRUN_FAKE_CUINIT", "46"}}), error_of_gpus) ==
        "3: the NVIDIA driver: its devices: unknown error (46)");
}

TEST_CASE("a failed driver is initialized again on the next call") {
  const std::string answer = run_with(with_driver({{"DDPRUN_FAKE_CUINIT", "999"}}), [] {
    const std::string first = error_of_gpus();
    unsetenv("DDPRUN_FAKE_CUINIT");
    return first + "\n" + error_of_gpus();
  });
  CHECK(answer == "3: the NVIDIA driver: its devices: unknown error (999)\nno error");
}

TEST_CASE("a rank's GPU is the one in launch.devices, or the one with its local rank") {
  const auto device = [](std::vector<int64_t> devices, int local_rank, int local_size,
                         std::map<std::string, std::string> variables = {}) {
    return run_with(with_driver(std::move(variables)), [&] {
      std::string found;
      const std::string error =
          error_of([&] { found = std::to_string(cuda::device_of(devices, local_rank, local_size)); });
      return found.empty() ? error : found;
    });
  };
  CHECK(device({}, 1, 2) == "1");
  CHECK(device({1, 0}, 0, 2) == "1");
  CHECK(device({0, 0, 0}, 2, 3) == "0");

  const std::map<std::string, std::string> one = {{"DDPRUN_FAKE_GPUS", "1"}};
  CHECK(device({}, 3, 4, one) ==
        "3: launch.nproc = 4, but this machine has 1 GPU: at most 1 rank, or name the GPU of each rank in "
        "launch.devices ([0, 0, 0, 0]: all on one)");
  CHECK(device({}, 2, 3, {{"CUDA_VISIBLE_DEVICES", "1,0"}}) ==
        "3: launch.nproc = 3, but this machine has 2 GPUs (CUDA_VISIBLE_DEVICES=1,0): at most 2 ranks, or name the GPU "
        "of each rank in launch.devices ([0, 0, 0]: all on one)");
  CHECK(device({0}, 1, 2) == "3: launch.devices names 1 GPU, but launch.nproc = 2: name one for each rank of a node");
  CHECK(device({0, 7}, 1, 2) == "3: no GPU 7: this machine has 2 GPUs, counted from 0");
  CHECK(device({-1}, 0, 1) == "3: no GPU -1: this machine has 2 GPUs, counted from 0");
}

}  // namespace
}  // namespace ddprun
