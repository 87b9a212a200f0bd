// Session: all objects for training on one rank besides the model, made from the config.
#pragma once

#include <memory>
#include <vector>

#include "checkpoint/folder.hpp"
#include "cli/run/assembly.hpp"
#include "cli/run/callbacks.hpp"
#include "cli/run/event_writer.hpp"
#include "cli/run/gpu_watch.hpp"
#include "cli/run/group.hpp"
#include "cli/run/run_folder.hpp"
#include "cli/run/training_data.hpp"
#include "record/recorder.hpp"
#include "train/device/device_graph.hpp"
#include "train/loop/agreement.hpp"
#include "train/loop/checkpointing.hpp"
#include "train/loop/parity.hpp"
#include "train/loop/policies.hpp"
#include "train/loop/tracer.hpp"
#include "train/loop/training_loop.hpp"
#include "train/optim/optimizers.hpp"
#include "train/reduce/gradient_sync.hpp"

namespace ddprun::run {

// The members are in order of dependency. Constructor arguments must outlive it. Single-threaded.
class Session {
 public:
  Session(Assembly& assembly, Group& group, const launch::World& world, const RunFolder& folder,
          record::Recorder& recorder);

  Trainer& trainer() { return *trainer_; }
  const train::Tracer* tracer() const { return tracer_.get(); }  // null unless configured
  const train::RankGroup& ranks() const { return ranks_; }
  const train::DataLoader& loader() const { return *loaders_.train; }
  const LauncherLink& launcher_link() const { return launcher_link_; }
  // Why the ranks stopped; ok if no one requested it.
  ExitCode stopped_by() const { return agreement_.stopped_by(); }

 private:
  std::unique_ptr<train::GradientSync> make_sync(const Assembly& assembly, Group& group);
  void make_checkpointer(Assembly& assembly, const RunFolder& folder, const launch::World& world);
  // In call order.
  std::vector<train::Callback*> make_callbacks(const Assembly& assembly, const launch::World& world,
                                               record::Recorder& recorder);

  const config::Experiment& experiment_;
  train::RankGroup ranks_;
  const std::vector<train::NamedTensor> parameters_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  DataLoaders loaders_;
  std::unique_ptr<checkpoint::CheckpointFolder> folder_;  // on rank 0
  // Callbacks; null if the config does not use them.
  LauncherLink launcher_link_;
  train::Agreement agreement_;
  RecordWriter record_writer_;
  std::unique_ptr<train::Callback> fault_;  // on the rank that makes it
  std::unique_ptr<train::GradientCheck> gradient_check_;
  std::unique_ptr<ConsoleProgress> progress_;  // on rank 0
  std::unique_ptr<EventWriter> event_writer_;  // on rank 0
  std::unique_ptr<GpuWatch> gpu_watch_;        // on a GPU
  std::unique_ptr<train::Tracer> tracer_;
  std::unique_ptr<train::ParityLog> parity_;
  std::unique_ptr<train::CheckpointCallback> checkpoints_;
  std::unique_ptr<train::BestWeights> best_weights_;
  std::unique_ptr<train::LoadBalance> load_balance_;
  std::unique_ptr<train::EarlyStop> early_stop_;

  std::unique_ptr<train::GradientSync> sync_;  // under ddp
  std::unique_ptr<train::Checkpointer> checkpointer_;
  std::unique_ptr<train::DeviceGraph> graph_;  // null unless configured; must be destroyed before the backend
  std::unique_ptr<train::Strategy> strategy_;
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace ddprun::run
