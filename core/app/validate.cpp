#include <cstdio>

#include "app/commands.hpp"
#include "app/run/checks.hpp"

namespace ddprun::app {

ExitCode validate(const Arguments& arguments) {
  config::Loaded loaded = config::load(arguments.config, arguments.overrides, arguments.ranks);
  if (!run::find_resume(loaded)) return ExitCode::ok;
  const bool elsewhere = arguments.ranks && loaded.experiment.strategy.kind == "ddp";
  const int ranks = elsewhere ? *arguments.ranks : run::ranks_of(loaded);
  run::check(loaded, plugin::Registry::standard(arguments.plugin_paths), ranks);
  const auto& data = loaded.experiment.data;
  const int64_t batch = data.batch_per == "rank" ? data.batch_size : data.batch_size / ranks;
  std::printf("%s: ok: %d rank%s, %lld samples per rank and step\n", arguments.config.c_str(), ranks,
              ranks == 1 ? "" : "s", static_cast<long long>(batch));
  return ExitCode::ok;
}

}  // namespace ddprun::app
