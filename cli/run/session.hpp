// Session: all objects for training on one rank besides the model, made from the config.
#pragma once

#include <memory>
#include <vector>

#include "checkpoint/folder.hpp"
#include "cli/run/assembly.hpp"
#include "cli/run/callbacks.hpp"
#include "cli/run/connections.hpp"
#include "cli/run/run_folder.hpp"
#include "cli/run/training_data.hpp"
#include "record/recorder.hpp"
#include "train/device/device_graph.hpp"
#include "train/loop/agreement.hpp"
#include "train/loop/checkpointing.hpp"
#include "train/loop/parity.hpp"
#include "train/loop/tracer.hpp"
#include "train/loop/training_loop.hpp"
#include "train/reduce/gradient_sync.hpp"

namespace ddprun::run {

// The members are in order of dependency. Constructor arguments must outlive it. Single-threaded.
class Session {
 public:
  Session(Assembly& assembly, Connections& connections, const launch::World& world, const RunFolder& folder,
          record::Recorder& recorder);

  Trainer& trainer() { return *trainer_; }
  const train::Tracer* tracer() const { return tracer_; }  // null unless configured
  const train::DataLoader& loader() const { return *loaders_.train; }
  const LauncherLink& launcher_link() const { return launcher_link_; }
  // Why the ranks stopped; ok if no one requested it.
  ExitCode stopped_by() const { return agreement_.stopped_by(); }

 private:
  void make_checkpointer(Assembly& assembly, const RunFolder& folder, const launch::World& world);
  // In call order.
  std::vector<train::Observer*> make_observers(const Assembly& assembly, const launch::World& world,
                                               record::Recorder& recorder);
  std::vector<train::Policy*> make_policies(const Assembly& assembly, const launch::World& world);

  const config::Experiment& experiment_;
  const std::vector<train::NamedTensor> parameters_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  DataLoaders loaders_;
  std::unique_ptr<checkpoint::CheckpointFolder> folder_;  // on rank 0
  LauncherLink launcher_link_;
  train::Agreement agreement_;
  std::vector<std::unique_ptr<train::Observer>> observers_;  // further ones
  std::vector<std::unique_ptr<train::Policy>> policies_;     // further ones
  train::Tracer* tracer_ = nullptr;                          // null unless configured, as parity_ and graph_
  std::unique_ptr<train::ParityLog> parity_;
  std::unique_ptr<train::GradientSync> sync_;  // under ddp
  std::unique_ptr<train::Checkpointer> checkpointer_;
  std::unique_ptr<train::Checkpoints> checkpoints_;
  std::unique_ptr<train::DeviceGraph> graph_;  // must be destroyed before the backend
  std::unique_ptr<train::Strategy> strategy_;
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace ddprun::run
