#include "tools/bench/bench.hpp"

#include "app/command_line.hpp"
#include "tools/bench/rank.hpp"
#include "launch/world.hpp"

namespace ddprun::app {

ExitCode bench(const Arguments& arguments) {
  const auto plan = bench::plan_of(arguments.bench, plugin::Registry::standard(arguments.plugin_paths));
  const auto world = launch::discover(std::nullopt);
  if (arguments.bench_task.empty()) {
    if (world) throw Error(ExitCode::usage, "ddprun bench starts its ranks itself: start it once, without a launcher");
    std::vector<std::string> command = arguments.argv;
    command[0] = this_program();
    return bench::run(arguments.bench, plan, command);
  }
  if (!world || world->source != launch::Source::own) {
    throw Error(ExitCode::usage, "--task is for the ranks that ddprun bench starts");
  }
  bench::run_rank(plan, bench::Task::parse(arguments.bench_task), *world);
  return ExitCode::ok;
}

}  // namespace ddprun::app
