// What trains on one rank: all that an experiment needs beside the model, built and put together.
#pragma once

#include <memory>
#include <vector>

#include "checkpoint/folder.hpp"
#include "record/recorder.hpp"
#include "run/assembly.hpp"
#include "run/group.hpp"
#include "run/run_observer.hpp"
#include "train/optimizers.hpp"
#include "train/parity_log.hpp"
#include "train/reducer.hpp"
#include "train/trainer.hpp"

namespace ddprun::run {

// Members in the order in which they depend on one another. What it is made from must outlive it. One thread.
class Session {
 public:
  Session(Assembly& assembly, Group& group, const launch::World& world, record::Recorder& recorder,
          ObserverOptions options);

  train::Trainer& trainer() { return *trainer_; }
  const train::Feed& feed() const { return *train_; }
  const RunObserver& observer() const { return observer_; }

 private:
  void make_feeds(Assembly& assembly, const launch::World& world);
  void make_checkpointer(Assembly& assembly, const std::string& run_dir, const launch::World& world);
  std::unique_ptr<train::Trainer> make_trainer(Assembly& assembly, Group& group);
  std::unique_ptr<train::Trainer> make_dp(train::Parts parts, const std::vector<train::ModelPtr>& replicas);
  std::unique_ptr<train::Trainer> make_ddp(train::Parts parts, comm::CommBackend& backend);
  void make_reducer(comm::CommBackend& backend);

  const config::Experiment& experiment_;
  RunObserver observer_;
  const std::vector<train::NamedTensor> parameters_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<train::Feed> train_;
  std::unique_ptr<train::Feed> test_;                     // null without evaluation
  std::unique_ptr<checkpoint::CheckpointFolder> folder_;  // on rank 0
  std::unique_ptr<train::ParityLog> parity_;              // null unless the config asks for it
  std::unique_ptr<train::Reducer> reducer_;               // under ddp
  std::unique_ptr<train::Checkpointer> checkpointer_;
  std::unique_ptr<train::Trainer> trainer_;
};

}  // namespace ddprun::run
