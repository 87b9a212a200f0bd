// Makes the objects of a training step, its data, and their options, from the config.
#pragma once

#include <memory>

#include "cli/run/assembly.hpp"
#include "cli/run/connections.hpp"
#include "elastic/survivor.hpp"
#include "launch/world.hpp"
#include "train/loop/data_loader.hpp"
#include "train/loop/step_runner.hpp"
#include "train/loop/strategy.hpp"
#include "train/optim/optimizers.hpp"
#include "train/reduce/gradient_sync.hpp"

namespace ddprun::run {

// scale_lr = "world" multiplies lr by the world size (Goyal et al. 2017).
train::OptimizerOptions optimizer_options(const config::Experiment::Optimizer& chosen, int world);

// Throws Error(usage) if the warm-up is as long as the run.
train::StepOptions step_options(const config::Loaded& loaded, int world, int64_t steps_per_epoch);

// The steps in log.trace_steps. Throws Error(usage) for a step beyond the end of the run.
std::vector<int64_t> steps_to_trace(const config::Loaded& loaded, int64_t steps_per_epoch);

// Under ZeRO, an optimizer of this rank's parameters.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const config::Experiment& experiment,
                                                        const std::vector<train::NamedTensor>& parameters,
                                                        const Connections& connections, int world);

// For the assembly's model under ddp; otherwise null. Collective.
std::unique_ptr<train::GradientSync> make_sync(const Assembly& assembly, const Connections& connections);

// With strategy.virtual_ranks; otherwise null. survivor: as make_session().
std::unique_ptr<elastic::VirtualRanks> make_virtual_ranks(const Assembly& assembly, const Connections& connections,
                                                          train::GradientSync* sync, const elastic::Survivor* survivor);

// With model.sync_batch_norm under ddp: converts the model's BatchNorm modules to these ranks. Throws
// Error(usage) that names the key and a module that cannot be converted.
void synchronize_batch_norm(const Assembly& assembly, const Connections& connections);

// `sync` is that of make_sync(). All arguments must outlive the result.
std::unique_ptr<train::Strategy> make_strategy(const Assembly& assembly, const comm::Group& ranks,
                                               train::GradientSync* sync);

// Checks of data.* that need the number of ranks. Throws Error(usage) with the location in the config if: an epoch
// would have no step, because there are fewer samples than ranks and the rest is dropped; the warm-up or a step to
// trace is beyond the end of the run. Starts no thread.
void check_training_data(const Assembly& assembly, int world);

// With data.standardize: standardises both sets, with assembly.standardization if a checkpoint has set it. Otherwise
// fits it on the samples that are trained on, and sets it. Every rank fits by itself: one pass in the same order gives
// all ranks the same bits, without waiting for each other. Starts threads. Throws Error(usage) with the location in the
// config.
void standardize_data(Assembly& assembly);

// Every test sample exactly once for any number of ranks.
std::unique_ptr<train::DataLoader> test_loader(const Assembly& assembly, const launch::World& world);

struct DataLoaders {
  std::unique_ptr<train::DataLoader> train;
  std::unique_ptr<train::DataLoader> validation, test;  // null if they are not evaluated
};

// The assembly must outlive them. Starts threads. Throws as standardize_data() does.
DataLoaders make_loaders(const Assembly& assembly, const launch::World& world);

}  // namespace ddprun::run
