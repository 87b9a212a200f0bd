// All objects for training on one rank besides the model, made from the config.
#pragma once

#include <memory>
#include <vector>

#include "checkpoint/folder.hpp"
#include "cli/run/assembly.hpp"
#include "cli/run/connections.hpp"
#include "cli/run/observers.hpp"
#include "cli/run/run_folder.hpp"
#include "cli/run/training.hpp"
#include "elastic/survivor.hpp"
#include "record/recorder.hpp"
#include "train/loop/agreement.hpp"
#include "train/loop/checkpointing.hpp"
#include "train/loop/tracer.hpp"
#include "train/loop/training_loop.hpp"
#include "train/reduce/gradient_sync.hpp"

namespace ddprun::run {

// In order of dependency: each object may use those above it. Null: not configured.
struct Session {
  std::vector<train::NamedTensor> parameters;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  DataLoaders loaders;
  std::unique_ptr<LauncherLink> launcher_link;
  std::unique_ptr<train::Agreement> agreement;
  std::unique_ptr<elastic::VirtualRanks> virtual_ranks;  // with strategy.virtual_ranks; `sync` uses it
  std::unique_ptr<train::GradientSync> sync;             // under ddp
  std::unique_ptr<checkpoint::CheckpointFolder> folder;  // on rank 0
  std::unique_ptr<train::Checkpointer> checkpointer;
  std::unique_ptr<train::Checkpoints> checkpoints;
  std::unique_ptr<train::Tracer> tracer;
  std::vector<std::unique_ptr<train::Observer>> observers;  // further ones
  std::vector<std::unique_ptr<train::Policy>> policies;     // further ones
  std::unique_ptr<train::Strategy> strategy;
  std::unique_ptr<Trainer> trainer;
};

// The arguments must outlive the result. survivor: null unless ranks may die. Collective. Throws what its parts throw.
std::unique_ptr<Session> make_session(Assembly& assembly, Connections& connections, const launch::World& world,
                                      const RunFolder& folder, record::Recorder& recorder, elastic::Survivor* survivor);

// What the first lines of a run say. threads: as use_threads().
std::string banner(const Assembly& assembly, const train::DataLoader& loader, int world, int64_t threads,
                   const std::string& run_dir);

}  // namespace ddprun::run
