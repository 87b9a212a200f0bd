// From [strategy] of the config to the objects that carry it out.
#pragma once

#include <memory>

#include "app/run/assembly.hpp"
#include "app/run/group.hpp"
#include "train/device/device_graph.hpp"
#include "train/loop/rank_group.hpp"
#include "train/loop/strategy.hpp"
#include "train/reduce/bucketed_reducer.hpp"

namespace ddprun::run {

// The ranks that train together: those of the group's backend, or one where it has none.
train::RankGroup rank_group(const Assembly& assembly, const Group& group);

// For the assembly's model, under ddp; else null. Collective.
std::unique_ptr<train::BucketedReducer> make_reducer(const Assembly& assembly, const Group& group);

// Where train.cuda_graph asks for one; else null. Throws Error(plugin) that names the key where this build has none.
std::unique_ptr<train::DeviceGraph> make_graph(const Assembly& assembly);

// `reducer` is that of make_reducer(), and `gradients` the reducer that autograd reports to: the same, or one that
// wraps it; both null but under ddp. All arguments must outlive the result.
std::unique_ptr<train::Strategy> make_strategy(const Assembly& assembly, const train::RankGroup& ranks,
                                               train::BucketedReducer* reducer, Reducer* gradients);

}  // namespace ddprun::run
