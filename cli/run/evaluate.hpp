// `ddprun evaluate`: evaluates a checkpoint's weights on the test set.
#pragma once

#include <string>

#include "cli/config/experiment.hpp"
#include "launch/world.hpp"
#include "plugin/registry.hpp"

namespace ddprun::run {

// The weights of `checkpoint`, a file or a run folder (its newest commit), and their config: `config` if it is given,
// otherwise that of the run folder. Throws Error(usage) if there is none.
struct Evaluated {
  std::string checkpoint;
  std::string config;
};
Evaluated find_evaluated(const std::string& checkpoint, const std::string& config);

// Finds, before the launcher starts ranks, the errors that run_evaluation() would find. Starts no thread.
void check_evaluation(const config::Loaded& loaded, const std::string& checkpoint, const plugin::Registry& registry,
                      int world);

// One rank: every test sample once, with the config's strategy and the checkpoint's own standardisation. Rank 0 prints
// a table to stdout. Throws Error.
void run_evaluation(config::Loaded loaded, const std::string& checkpoint, launch::World world,
                    const plugin::Registry& registry);

}  // namespace ddprun::run
