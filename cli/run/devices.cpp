#include "cli/run/devices.hpp"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>

#include "base/subprocess.hpp"
#include "cli/console/table.hpp"
#include "cli/run/run.hpp"
#include "cuda/driver.hpp"
#include "ddprun/plugin/host.hpp"
#include "train/device/cuda.hpp"

namespace ddprun::run {
namespace {

constexpr int kLargestKept = 1 << 30;         // bytes; a larger block that is not reused would waste too much memory
constexpr int kLargestKeptBefore = 32 << 20;  // the maximum of older glibc versions
constexpr int kNeverTrim = -1;

bool on_gpus(const config::Experiment& experiment) {
  return experiment.launch.device == "cuda";
}

// CUDA device indices of one rank.
std::vector<int> gpus_of(const config::Experiment& experiment, int local_rank, int local_size) {
  const auto& devices = experiment.launch.devices;
  if (experiment.strategy.kind != "dp") return {cuda::device_of(devices, local_rank, local_size)};
  std::vector<int> gpus;
  const auto count = static_cast<int>(experiment.strategy.devices);
  const std::size_t there = cuda::gpus().size();
  if (devices.empty() && static_cast<std::size_t>(count) > there) {
    throw Error(ExitCode::plugin, "strategy.devices = " + std::to_string(count) + ", but this machine has " +
                                      console::several(static_cast<int64_t>(there), "GPU") +
                                      ": use at most as many, or name the GPU of each replica in launch.devices");
  }
  for (int device = 0; device < count; ++device) gpus.push_back(cuda::device_of(devices, device, count));
  return gpus;
}

// Calls `work`; in front of its error puts the location of the key that requires GPUs.
template <class Work>
auto at_key(const config::Loaded& loaded, Work work) {
  const char* const key = loaded.sources.given("launch.devices") ? "launch.devices" : "launch.device";
  return config::at_key(loaded.sources, key, work);
}

}  // namespace

void check_devices(const config::Loaded& loaded, int ranks) {
  const config::Experiment& experiment = loaded.experiment;
  if (!on_gpus(experiment)) return;
  at_key(loaded, [&] {
    return run_in_subprocess([&] {
      for (int rank = 0; rank < ranks; ++rank) gpus_of(experiment, rank, ranks);
      return 0;
    });
  });
}

std::optional<int> explicit_nproc(const config::Loaded& loaded) {
  const config::Location* location = loaded.sources.find("launch.nproc");
  const bool given = location != nullptr && location->on_command_line() && loaded.experiment.launch.nproc > 0;
  return given ? std::optional(static_cast<int>(loaded.experiment.launch.nproc)) : std::nullopt;
}

int ranks_of(const config::Loaded& loaded) {
  const config::Experiment& experiment = loaded.experiment;
  if (const std::string& kind = experiment.strategy.kind; kind != "ddp") {
    // A file may have launch.nproc for another strategy, but a command line asks for the ranks of this run.
    if (const int asked = explicit_nproc(loaded).value_or(1); asked > 1) {
      throw Error(ExitCode::usage, config::error(loaded.sources, "launch.nproc",
                                                 "strategy.kind = \"" + kind +
                                                     "\" trains in one process; set "
                                                     "strategy.kind = \"ddp\" for " +
                                                     std::to_string(asked) + " ranks"));
    }
    return 1;
  }
  if (experiment.launch.nproc > 0) return static_cast<int>(experiment.launch.nproc);
  if (experiment.launch.device == "cpu") return usable_cores();
  const std::size_t named = experiment.launch.devices.size();
  if (named > 0) return static_cast<int>(named);
  const auto count = [] { return static_cast<int64_t>(cuda::gpus().size()); };
  return static_cast<int>(at_key(loaded, [&] { return run_in_subprocess(count); }));
}

std::vector<torch::Device> choose_devices(const config::Loaded& loaded, const launch::World& world) {
  const config::Experiment& experiment = loaded.experiment;
  const bool dp = experiment.strategy.kind == "dp";
  const std::size_t count = dp ? static_cast<std::size_t>(experiment.strategy.devices) : 1;
  if (!on_gpus(experiment)) return std::vector<torch::Device>(count, torch::kCPU);
  // Torch refuses deterministic kernels without this setting of cuBLAS.
  if (experiment.train.deterministic) ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  const auto gpus = at_key(loaded, [&] {
    std::vector<int> found = gpus_of(experiment, world.local_rank, world.local_size);
    train::choose_device(experiment.launch.device, found.front());
    return found;
  });
  std::vector<torch::Device> devices;
  for (const int gpu : gpus) devices.emplace_back(torch::kCUDA, static_cast<c10::DeviceIndex>(gpu));
  return devices;
}

void place_models(Assembly& assembly, const std::vector<torch::Device>& devices) {
  assembly.devices = devices;
  if (assembly.experiment().train.deterministic) {
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
    at::globalContext().setDeterministicCuDNN(true);
  }
  if (!on_gpus(assembly.experiment())) return;
  at::globalContext().setBenchmarkCuDNN(assembly.experiment().train.cudnn_benchmark);
  assembly.model->module().to(assembly.device());
  auto replica = assembly.replicas.begin();
  for (std::size_t number = 1; number < devices.size(); ++number) (*replica++)->module().to(devices[number]);
}

int64_t use_threads(const config::Experiment& experiment, const launch::World& world) {
  int64_t threads = experiment.launch.threads;
  if (threads == 0) threads = launch::threads_of_rank(world);
  if (experiment.strategy.kind == "dp") threads = std::max<int64_t>(1, threads / experiment.strategy.devices);
  torch::set_num_threads(static_cast<int>(threads));
  return threads;
}

void keep_freed_memory() {
  if (std::getenv("MALLOC_MMAP_THRESHOLD_") != nullptr || std::getenv("MALLOC_TRIM_THRESHOLD_") != nullptr) return;
  // If malloc rejects M_MMAP_THRESHOLD, M_TRIM_THRESHOLD must not be set either: it would disable the dynamic
  // thresholds.
  if (mallopt(M_MMAP_THRESHOLD, kLargestKept) == 0 && mallopt(M_MMAP_THRESHOLD, kLargestKeptBefore) == 0) return;
  mallopt(M_TRIM_THRESHOLD, kNeverTrim);
}

}  // namespace ddprun::run
