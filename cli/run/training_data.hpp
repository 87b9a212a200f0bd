// The data that a rank trains and evaluates on, from [data] of the config.
#pragma once

#include <memory>

#include "cli/run/assembly.hpp"
#include "data/sampler.hpp"
#include "launch/world.hpp"
#include "train/loop/data_loader.hpp"

namespace ddprun::run {

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
