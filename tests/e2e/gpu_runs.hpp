// Runs of the program on fake GPUs: NVIDIA's libraries and Torch's are replaced by those of tests/fakes/cuda.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"
#include "support/paths.hpp"

namespace ddprun::e2e {

using Settings = std::vector<std::string>;

inline const std::string kLinear = R"(
[launch]
threads = 1
[model]
name = "linear"
[data]
name = "linear"
batch_size = 16
options = { samples = 64, test_samples = 16 }
[train]
epochs = 2
)";

inline const std::string kResnet = R"(
[launch]
threads = 1
[model]
name = "resnet18"
options = { stem = "small" }
[data]
name = "synthetic"
batch_size = 6
options = { shape = "3x32x32", classes = 10, samples = 12, test_samples = 6 }
[optimizer]
lr = 0.01
)";

// Twenty steps.
inline const std::string kSimplenet = R"(
[launch]
threads = 1
[strategy]
bucket_cap_mb = 0.004  # two buckets
[model]
name = "simplenet"
[data]
name = "synthetic"
batch_size = 24
options = { shape = "1x28x28", classes = 10, samples = 240, test_samples = 48 }
[optimizer]
lr = 0.05
momentum = 0.9
[train]
epochs = 2
)";

// `argv` on a machine with two fake GPUs. Torch names the runtime by its own path, so that the fake one must be
// preloaded.
inline Settings with_gpus(Settings argv, Settings variables = {}) {
  const std::string folder = testing::build_dir() + "/tests/fakes/cuda";
  Settings all = {"/usr/bin/env", "LD_LIBRARY_PATH=" + folder, "LD_PRELOAD=" + folder + "/libcudart.so.13"};
  all.insert(all.end(), variables.begin(), variables.end());
  all.insert(all.end(), argv.begin(), argv.end());
  return all;
}

inline const Settings kOnGpu = {"launch.device=cuda"};
inline const Settings kDp = {"strategy.kind=dp", "strategy.devices=2"};
inline const Settings kNccl = {"strategy.kind=ddp", "launch.nproc=2", "comm.backend=nccl"};
inline const Settings kGloo = {"strategy.kind=ddp", "launch.nproc=2", "comm.backend=gloo"};

struct Trained {
  std::vector<double> losses;
  std::map<std::string, std::string> weights;  // name -> type and bytes
  nlohmann::json summary;
  std::filesystem::path run;
  std::string err;
};

inline void check_same(const Trained& one, const Trained& other) {
  CHECK(distance(one.losses, other.losses) == 0);
  CHECK((one.weights == other.weights));
  CHECK(one.summary.at("test.loss") == other.summary.at("test.loss"));
}

class Runs {
 public:
  explicit Runs(const std::string& config) : config_(place_.config(config)) {}

  Workplace& place() { return place_; }
  Settings argv(const Settings& settings) const { return place_.training(config_, settings); }

  Trained on_cpu(const Settings& settings, int world = 1) { return trained(argv(settings), world); }
  Trained on_gpus(const Settings& settings, int world = 1, const Settings& variables = {}) {
    const Settings log = {"DDPRUN_FAKE_GPU_LOG=" + (place_.folder() / "gpu").string()};
    return trained(with_gpus(argv(settings + kOnGpu), log + variables), world);
  }
  ProcessResult start_on_gpus(const Settings& settings, const Settings& variables = {}) {
    return place_.run(with_gpus(argv(settings + kOnGpu), variables));
  }
  // What the fake GPUs of the last run recorded, one text per process.
  std::vector<std::string> records() const {
    std::vector<std::string> texts;
    for (const auto& entry : std::filesystem::directory_iterator(place_.folder())) {
      if (entry.path().filename().string().starts_with("gpu.")) texts.push_back(testing::read_file(entry.path()));
    }
    return texts;
  }

 private:
  Trained trained(const Settings& argv, int world) {
    const auto result = place_.run(argv);
    INFO(result.err);
    REQUIRE(result.code == 0);
    const auto run = place_.new_run();
    return {losses_of(run, world), tensors_of(run), summary_of(run), run, result.err};
  }

  Workplace place_;
  std::string config_;
};

// Of two endless runs with these settings, one whose rank 1 is killed and one whose rank 1 is stopped.
inline void check_lost_rank(const Settings& settings) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    Runs runs(kSimplenet);
    Job job(runs.place(), with_gpus(runs.argv(settings + Settings{"train.epochs=100000"})));
    job.wait_for_steps();
    const auto below = job.descendants();
    kill(job.ranks(2).at(1), signal);
    const auto result = job.launcher().wait();
    CHECK(result.code == 5);
    const std::string cause = signal == SIGKILL ? "killed by signal 9 (SIGKILL)" : "stopped by a signal";
    CHECK_MESSAGE(testing::contains(testing::last_line(result.err), cause), result.err);
    CHECK(testing::eventually([&] { return std::none_of(below.begin(), below.end(), testing::is_alive); }));
    CHECK(runs.place().leftovers().empty());
  }
}

}  // namespace ddprun::e2e
