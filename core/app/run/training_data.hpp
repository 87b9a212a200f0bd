// From [data] of the config to what a rank trains and evaluates on.
#pragma once

#include <memory>

#include "app/run/assembly.hpp"
#include "data/sampler.hpp"
#include "launch/world.hpp"
#include "train/loop/data_loader.hpp"

namespace ddprun::run {

// What only the number of ranks, or a file that the config names, can tell of data.*. Throws Error(usage) with the
// place in the config: where an epoch would have no step, as there are fewer samples than ranks, and the rest is
// dropped; where data.batch_weights are not one for each rank; where a curriculum's scores cannot be read; where the
// warm-up or a step to trace lies beyond the run. Starts no thread.
void check_training_data(const Assembly& assembly, int world);

// With data.standardize: standardises both splits, by what assembly.standardization says of a checkpoint, else as fit
// on the training split, which it then says. Every rank fits by itself: a pass over the data in one order gives all the
// same bits, and none has to wait for another. Starts threads. Throws Error(usage) with the place in the config.
void standardize_data(Assembly& assembly);

// Every test sample once, whatever the ranks: an average over padded samples would not be the model's accuracy.
std::unique_ptr<train::DataLoader> test_loader(const Assembly& assembly, const launch::World& world);

struct DataLoaders {
  std::unique_ptr<train::DataLoader> train;
  std::unique_ptr<train::DataLoader> test;  // null without evaluation
};

// The assembly must outlive them. Starts threads. Throws as standardize_data() does.
DataLoaders make_loaders(const Assembly& assembly, const launch::World& world);

}  // namespace ddprun::run
