// `ddprun evaluate`: a checkpoint's weights on the test set.
#pragma once

#include <string>

#include "config/experiment.hpp"
#include "launch/world.hpp"
#include "plugin/registry.hpp"

namespace ddprun::run {

// Where the weights of `checkpoint` lie, a file or a run folder (its newest commit), and the config that belongs to
// them: `config` where it is given, else that of the run folder. Throws Error(usage) where there is none.
struct Evaluated {
  std::string checkpoint;
  std::string config;
};
Evaluated find_evaluated(const std::string& checkpoint, const std::string& config);

// What a launcher does before it starts ranks: finds the faults that run_evaluation() would find. Starts no thread.
void check_evaluation(const config::Loaded& loaded, const std::string& checkpoint, const plugin::Registry& registry,
                      int world);

// One rank: every test sample once, under the config's strategy and the checkpoint's own standardisation; rank 0 prints
// a table to stdout. Throws Error.
void run_evaluation(config::Loaded loaded, const std::string& checkpoint, const launch::World& world,
                    const plugin::Registry& registry);

}  // namespace ddprun::run
