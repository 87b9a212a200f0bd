// From [data] of the config to what a rank trains and evaluates on.
#pragma once

#include <memory>

#include "data/sampler.hpp"
#include "launch/world.hpp"
#include "run/assembly.hpp"
#include "train/feed.hpp"

namespace ddprun::run {

// With data.standardize: standardises both splits, by what assembly.standardization says of a checkpoint, else as fit
// on the training split, which it then says. Every rank fits by itself: a pass over the data in one order gives all the
// same bits, and none has to wait for another. Starts threads. Throws Error(usage) with the place in the config.
void standardize_data(Assembly& assembly);

// Every test sample once, whatever the ranks: an average over padded samples would not be the model's accuracy.
std::unique_ptr<train::Feed> test_feed(const Assembly& assembly, const launch::World& world);

struct Feeds {
  std::unique_ptr<train::Feed> train;
  std::unique_ptr<train::Feed> test;  // null without evaluation
};

// The assembly must outlive them. Starts threads. Throws as standardize_data() does.
Feeds make_feeds(const Assembly& assembly, const launch::World& world);

}  // namespace ddprun::run
