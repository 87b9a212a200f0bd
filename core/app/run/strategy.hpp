// From [strategy] of the config to the trainer that follows it.
#pragma once

#include <memory>

#include "app/run/assembly.hpp"
#include "app/run/group.hpp"
#include "train/device/device_graph.hpp"
#include "train/reduce/reducer.hpp"
#include "train/loop/trainer.hpp"

namespace ddprun::run {

// Of the assembly's model, under ddp; else null. `on_wait` as in ReducerOptions. Collective.
std::unique_ptr<train::Reducer> make_reducer(const Assembly& assembly, Group& group,
                                             std::function<void(int bucket)> on_wait);

// Where train.cuda_graph asks for one, else null. Throws Error(plugin) that names the key where there is none to be
// had.
std::unique_ptr<train::DeviceGraph> make_graph(const Assembly& assembly);

// All arguments must outlive it; `reducer` is that of make_reducer().
std::unique_ptr<train::Trainer> make_trainer(train::Parts parts, const Assembly& assembly, Group& group,
                                             train::Reducer* reducer);

}  // namespace ddprun::run
