#include "cli/run/checks.hpp"

#include <torch/torch.h>

#include "cli/run/assembly.hpp"
#include "cli/run/devices.hpp"
#include "cli/run/resume.hpp"
#include "cli/run/training_data.hpp"
#include "record/environment.hpp"

namespace ddprun::run {

void check(const config::Loaded& loaded, const plugin::Registry& registry, std::optional<int> world) {
  torch::set_num_threads(1);
  Assembly assembly = assemble(loaded, registry);
  if (!world) return;
  rank_batch(loaded, *world);
  check_training_data(assembly, *world);
  prepare_resume(assembly, *world, std::nullopt);
}

std::optional<int> explicit_nproc(const config::Loaded& loaded) {
  const config::Place* place = loaded.sources.find("launch.nproc");
  const bool given = place != nullptr && place->on_command_line() && loaded.experiment.launch.nproc > 0;
  return given ? std::optional(static_cast<int>(loaded.experiment.launch.nproc)) : std::nullopt;
}

int ranks_of(const config::Loaded& loaded) {
  const config::Experiment& experiment = loaded.experiment;
  if (const std::string& kind = experiment.strategy.kind; kind != "ddp") {
    // A file may have launch.nproc for another strategy, but a command line asks for the ranks of this run.
    if (const int asked = explicit_nproc(loaded).value_or(1); asked > 1) {
      throw Error(ExitCode::usage, config::error(loaded.sources, "launch.nproc",
                                                 "strategy.kind = \"" + kind +
                                                     "\" trains in one process; set "
                                                     "strategy.kind = \"ddp\" for " +
                                                     std::to_string(asked) + " ranks"));
    }
    return 1;
  }
  if (experiment.launch.nproc > 0) return static_cast<int>(experiment.launch.nproc);
  if (experiment.launch.device == "cpu") return record::usable_cores();
  const std::size_t named = experiment.launch.devices.size();
  return named > 0 ? static_cast<int>(named) : gpu_count(loaded);
}

}  // namespace ddprun::run
