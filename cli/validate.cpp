#include <cstdio>

#include "cli/commands.hpp"
#include "cli/console/table.hpp"
#include "cli/run/run.hpp"
#include "launch/failure.hpp"

namespace ddprun::app {
namespace {

void validate_file(const std::string& file, const Arguments& arguments) {
  config::Loaded loaded = config::load(file, arguments.overrides, arguments.ranks);
  if (!run::find_resume(loaded)) return;
  const bool elsewhere = arguments.ranks && loaded.experiment.strategy.kind == "ddp";
  const int ranks = elsewhere ? *arguments.ranks : run::ranks_of(loaded);
  run::prepare(loaded, plugin::Registry::standard(arguments.plugin_paths), ranks);
  const auto& data = loaded.experiment.data;
  const int64_t batch = data.batch_per == "rank" ? data.batch_size : data.batch_size / ranks;
  std::printf("%s: ok: %s, %lld samples per rank and step\n", file.c_str(), console::several(ranks, "rank").c_str(),
              static_cast<long long>(batch));
}

}  // namespace

// The code of the first error.
ExitCode validate(const Arguments& arguments) {
  ExitCode code = ExitCode::ok;
  for (const std::string& file : arguments.configs) {
    try {
      validate_file(file, arguments);
    } catch (const Error& error) {
      const ExitCode reported = launch::report_failure(error.code(), error.what());
      if (code == ExitCode::ok) code = reported;
    }
  }
  return code;
}

}  // namespace ddprun::app
