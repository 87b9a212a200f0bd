// Run folders, written by the recorder of real runs.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "record/environment.hpp"
#include "record/recorder.hpp"
#include "testing/temp_dir.hpp"

namespace ddprun::testing {

struct SomeRun {
  int ranks = 2;
  int64_t steps = 6, epochs = 2;
  record::Summary summary;
  std::function<void(record::StepRecord&)> change = [](record::StepRecord&) {};
  std::string settings;  // more of its config

  SomeRun() {
    summary.model = "simplenet";
    summary.data = "mnist";
    summary.strategy = "ddp";
    summary.backend = "gloo";
    summary.algorithm = "ring";
    summary.transport = "tcp";
    summary.test_accuracy = 0.9;
    summary.train_loss = 0.25;
    summary.total_time = 12;
    summary.throughput = 1000;
    summary.avg_batch_time = 0.010;
    summary.avg_data_time = 0.001;
    summary.split.forward = 0.002;
    summary.split.backward = 0.003;
    summary.split.comm = 0.002;
    summary.split.optimizer = 0.001;
  }
};

// Rank 1 takes a millisecond longer than rank 0; step n takes n milliseconds.
inline std::string write_run(const TempDir& folder, const std::string& name, SomeRun run) {
  const std::string dir = (folder.path() / name).string();
  std::filesystem::create_directories(dir);
  folder.write(name + "/config.toml",
               "[model]\nname = \"simplenet\"\n[data]\nname = \"mnist\"\n" + run.settings);
  record::write_environment(dir, record::collect_environment({{"torch", "2.11.0"}}));
  run.summary.world = run.ranks;
  for (int rank = 0; rank < run.ranks; ++rank) {
    record::Recorder recorder(dir, rank);
    for (int64_t step = 1; step <= run.steps; ++step) {
      record::StepRecord written;
      written.step = step;
      written.samples = 32 * (rank + 1);
      written.loss = rank;
      written.total = 1e-3 * static_cast<double>(step + rank);
      run.change(written);
      recorder.step(written);
    }
    for (int64_t epoch = 1; epoch <= run.epochs; ++epoch) {
      record::EpochRecord written;
      written.epoch = epoch;
      written.train_loss = 1.0 / static_cast<double>(epoch);
      written.test_loss = 1.1 / static_cast<double>(epoch);
      written.test_accuracy = 0.5 + 0.1 * static_cast<double>(epoch);
      recorder.epoch(written);
    }
    recorder.summary(run.summary);
  }
  return dir;
}

}  // namespace ddprun::testing
