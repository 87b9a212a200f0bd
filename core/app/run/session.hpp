// What trains on one rank: all that an experiment needs beside the model, built and put together.
#pragma once

#include <memory>
#include <vector>

#include "checkpoint/folder.hpp"
#include "record/recorder.hpp"
#include "app/run/assembly.hpp"
#include "app/run/group.hpp"
#include "app/run/run_observer.hpp"
#include "app/run/training_data.hpp"
#include "train/device/device_graph.hpp"
#include "train/optim/optimizers.hpp"
#include "train/loop/parity_log.hpp"
#include "train/reduce/reducer.hpp"
#include "train/loop/tracer.hpp"
#include "train/loop/trainer.hpp"

namespace ddprun::run {

// Members in the order in which they depend on one another. What it is made from must outlive it. One thread.
class Session {
 public:
  Session(Assembly& assembly, Group& group, const launch::World& world, record::Recorder& recorder,
          ObserverOptions options);

  train::Trainer& trainer() { return *trainer_; }
  const train::Tracer* tracer() const { return tracer_.get(); }  // null unless the config asks for it
  const train::DataLoader& loader() const { return *loaders_.train; }
  const RunObserver& observer() const { return observer_; }

 private:
  void make_checkpointer(Assembly& assembly, const std::string& run_dir, const launch::World& world);
  train::Observer& news();
  void waiting_for(int bucket);
  train::Parts parts(Assembly& assembly, int world);

  const config::Experiment& experiment_;
  RunObserver observer_;
  const std::vector<train::NamedTensor> parameters_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  DataLoaders loaders_;
  std::unique_ptr<checkpoint::CheckpointFolder> folder_;  // on rank 0
  std::unique_ptr<train::Tracer> tracer_;                 // null unless the config asks for it
  std::unique_ptr<train::ParityLog> parity_;              // null unless the config asks for it
  std::unique_ptr<train::Reducer> reducer_;               // under ddp
  std::unique_ptr<train::Checkpointer> checkpointer_;
  std::unique_ptr<train::DeviceGraph> graph_;  // null unless the config asks for it; before the backend goes
  std::unique_ptr<train::Trainer> trainer_;
};

}  // namespace ddprun::run
