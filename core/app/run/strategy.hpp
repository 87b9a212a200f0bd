// Makes the objects of [strategy] of the config.
#pragma once

#include <memory>

#include "app/run/assembly.hpp"
#include "app/run/group.hpp"
#include "train/device/device_graph.hpp"
#include "train/loop/rank_group.hpp"
#include "train/loop/strategy.hpp"
#include "train/reduce/bucketed_reducer.hpp"

namespace ddprun::run {

// The ranks that train together: those of the group's backend, or one rank without a backend.
train::RankGroup rank_group(const Assembly& assembly, const Group& group);

// For the assembly's model under ddp; otherwise null. Collective.
std::unique_ptr<train::BucketedReducer> make_reducer(const Assembly& assembly, const Group& group);

// If train.cuda_graph is on; otherwise null. Throws Error(plugin) that names the key if this build does not support it.
std::unique_ptr<train::DeviceGraph> make_graph(const Assembly& assembly);

// `reducer` is that of make_reducer(). `gradients` is the reducer that autograd reports to: the same one, or one that
// wraps it. Both are null unless under ddp. All arguments must outlive the result.
std::unique_ptr<train::Strategy> make_strategy(const Assembly& assembly, const train::RankGroup& ranks,
                                               train::BucketedReducer* reducer, Reducer* gradients);

}  // namespace ddprun::run
