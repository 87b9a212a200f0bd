// The program `libexec/ddprun-engine`: the part of `ddprun` that needs LibTorch.
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/console/program.hpp"
#include "cli/console/table.hpp"
#include "cli/run/run.hpp"
#include "comm/plugin_backend.hpp"
#include "launch/failure.hpp"
#include "launch/supervisor.hpp"
#include "record/run_dir.hpp"

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

int engine(const std::function<ExitCode()>& body) {
  const int code = console::run_program([&] {
    try {
      return body();
    } catch (...) {
      throw run::current_error();
    }
  });
  if (code == 0) comm::finish_plugins();
  std::cout.flush();
  std::fflush(nullptr);
  return code;
}

ExitCode version(const Arguments&) {
  std::printf("ddprun %s\ntorch %s\ncompiler GCC %s\n", ddprun::version(), run::torch_version().c_str(), __VERSION__);
  return ExitCode::ok;
}

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

ExitCode evaluate(const Arguments& arguments) {
  const run::Evaluated found = run::find_evaluated(record::named_run(arguments.checkpoint), arguments.config);
  const config::Loaded loaded = config::load(found.config, arguments.overrides);
  const auto registry = plugin::Registry::standard(arguments.plugin_paths);
  const auto be_rank = [&](const launch::World& world) {
    run::run_evaluation(loaded, found.checkpoint, world, registry);
    return ExitCode::ok;
  };
  if (const auto world = launch::discover(std::nullopt)) return be_rank(*world);
  launch::Job job;
  job.nproc = run::ranks_of(loaded);
  if (job.nproc == 1) return be_rank({});
  job.command = arguments.argv;
  job.command[0] = console::this_program();
  run::check_evaluation(loaded, found.checkpoint, registry, job.nproc);
  return launch::supervise(std::move(job));
}

}  // namespace ddprun::app

int main(int argc, char** argv) {
  prctl(PR_SET_NAME, "ddprun");  // `ps` and `pgrep` show the command that the user has started
  // The destructors of LibTorch's static objects take 0.1 s, and free what the kernel frees.
  _exit(ddprun::app::engine([&] { return ddprun::app::run(argc, argv); }));
}
