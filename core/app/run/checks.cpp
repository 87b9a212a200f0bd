#include "app/run/checks.hpp"

#include <torch/torch.h>

#include "app/run/assembly.hpp"
#include "app/run/devices.hpp"
#include "app/run/resume.hpp"
#include "app/run/training_data.hpp"

namespace ddprun::run {

void check(const config::Loaded& loaded, const plugin::Registry& registry, std::optional<int> world) {
  torch::set_num_threads(1);
  Assembly assembly = assemble(loaded, registry);
  if (!world) return;
  rank_batch(loaded, *world);
  check_training_data(assembly, *world);
  prepare_resume(assembly, *world);
}

int ranks_of(const config::Loaded& loaded) {
  const config::Experiment& experiment = loaded.experiment;
  if (experiment.strategy.kind != "ddp") return 1;
  if (experiment.launch.nproc > 0) return static_cast<int>(experiment.launch.nproc);
  if (experiment.launch.device == "cpu") return usable_cores();
  const std::size_t named = experiment.launch.devices.size();
  return named > 0 ? static_cast<int>(named) : gpu_count(loaded);
}

}  // namespace ddprun::run
