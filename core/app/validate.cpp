#include <cstdio>

#include "app/commands.hpp"
#include "run/assembly.hpp"

namespace ddprun::app {

ExitCode validate(const Arguments& arguments) {
  config::Loaded loaded = config::load(arguments.config, arguments.overrides);
  const int ranks = run::ranks_of(loaded.experiment);
  const int64_t batch = run::rank_batch(loaded, ranks);
  const auto made = run::assemble(std::move(loaded), plugin::Registry::standard(arguments.plugin_paths));
  std::printf("%s: ok: %d rank%s, %lld samples a step and rank, %lld training samples\n", arguments.config.c_str(),
              ranks, ranks == 1 ? "" : "s", static_cast<long long>(batch),
              static_cast<long long>(made.data.train->size()));
  return ExitCode::ok;
}

}  // namespace ddprun::app
