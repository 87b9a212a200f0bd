#include "cli/run/threads.hpp"

#include <torch/torch.h>

#include <algorithm>

#include "launch/cores.hpp"

namespace ddprun::run {

int64_t use_threads(const config::Experiment& experiment, const launch::World& world) {
  int64_t threads = experiment.launch.threads;
  if (threads == 0) threads = launch::threads_of_rank(world);
  if (experiment.strategy.kind == "dp") threads = std::max<int64_t>(1, threads / experiment.strategy.devices);
  torch::set_num_threads(static_cast<int>(threads));
  return threads;
}

}  // namespace ddprun::run
