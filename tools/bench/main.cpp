// ddprun-bench: measures the collectives of communication plugins.
#include "console/command_line.hpp"
#include "console/program.hpp"
#include "launch/world.hpp"
#include "tools/bench/bench.hpp"
#include "tools/bench/rank.hpp"

namespace ddprun::bench {
namespace {

constexpr const char* kExample =
    "Example: ddprun bench -b 4 -e 64M -f 4 -n 50 -w 10 --backend gloo --algorithm ring,tree --ranks 2,4\n"
    "Every algorithm of every backend at every number of ranks is measured once per round, by newly started ranks "
    "alone.\n"
    "See docs/benchmarking.md.";

// A comma-separated list.
template <class Values>
CLI::Option* declare_list(CLI::App& to, const std::string& name, Values& values, const std::string& help,
                          const std::string& type) {
  return to.add_option(name, values, help)->delimiter(',')->type_name(type);
}

void declare_what(CLI::App& to, Request& request) {
  declare_list(to, "--backend", request.backends, "Communication plugins, by name or path", "NAME,...")
      ->capture_default_str();
  declare_list(to, "--algorithm", request.algorithms,
               "Allreduce algorithms: auto, or those of the plugins (default: auto; with --tune all)", "NAME,...");
  declare_list(to, "--ranks", request.ranks, "Processes on this host", "N,...")->capture_default_str();
  declare_list(to, "--collective", request.collectives, "allreduce, broadcast, allgather, reduce_scatter", "NAME,...")
      ->capture_default_str();
  to.add_option("--device", request.device, "Where the buffers are: cpu, cuda")->capture_default_str();
  declare_list(to, "--devices", request.devices,
               "With --device cuda: the GPU of each rank (default: rank i uses GPU i)", "N,...");
  to.add_option("--option", request.options, "comm.options of all backends, or of one: gloo.interface=lo; repeatable")
      ->type_name("[BACKEND.]KEY=VALUE")
      ->expected(1)
      ->take_all();
}

void declare_sizes(CLI::App& to, Request& request) {
  auto* least = to.add_option("-b,--minbytes", request.min_bytes, "Smallest size in bytes");
  least->type_name("SIZE")->capture_default_str();
  auto* most = to.add_option("-e,--maxbytes", request.max_bytes, "Largest size");
  most->type_name("SIZE")->capture_default_str();
  auto* factor = to.add_option("-f,--stepfactor", request.factor, "Factor from one size to the next");
  factor->capture_default_str();
  auto* step = to.add_option("-i,--stepbytes", request.step_bytes, "Increment from one size to the next");
  step->type_name("SIZE")->excludes(factor);
  auto* listed = declare_list(to, "--sizes", request.sizes, "List of sizes, ascending, instead of -b, -e", "SIZE,...");
  listed->excludes(least)->excludes(most)->excludes(factor)->excludes(step);
}

void declare_how(CLI::App& to, Request& request) {
  to.add_option("-n,--iters", request.iterations, "Samples of each case in each round")->capture_default_str();
  to.add_option("-w,--warmup_iters", request.warmup, "Calls before the samples")->capture_default_str();
  to.add_option("-c,--check", request.checks, "Calls in each round whose results are checked")->capture_default_str();
  to.add_option("-d,--datatype", request.dtype,
                "int8, uint8, int16, int32, int64, half, float, double, bfloat16; or PyTorch's names")
      ->type_name("TYPE")
      ->capture_default_str();
  to.add_option("-o,--op", request.op, "sum, prod, min, max, avg")->type_name("OP")->capture_default_str();
  to.add_option("-r,--root", request.root, "Root rank of broadcast")->capture_default_str();
  to.add_option("--rounds", request.rounds, "Rounds; each runs all variants, in changing order")->capture_default_str();
  to.add_option("--timeout", request.timeout, "Time limit of joining, and of one collective")
      ->type_name("SECONDS")
      ->capture_default_str();
}

void declare_results(CLI::App& to, Request& request) {
  to.add_option("--json", request.json, "Write all samples and the environment to this file")->type_name("FILE");
  to.add_option("--min-busbw", request.min_busbw, "Exit with 6 if busbw at the largest size is lower")
      ->type_name("GB/S");
  to.add_option("--tune", request.tune, "Write the fastest algorithm of each size, for comm.options.tuning")
      ->type_name("FILE");
}

// A rank of the benchmark is this program again, with --task.
ExitCode run_as_asked(const Request& request, const std::string& task, const plugin::Registry& registry,
                      std::vector<std::string> command) {
  const Plan plan = plan_of(request, registry);
  const auto world = launch::discover(std::nullopt);
  if (task.empty()) {
    if (world) throw Error(ExitCode::usage, "ddprun bench starts its ranks itself: run it without a launcher");
    command[0] = console::this_program();
    return run(request, plan, command);
  }
  if (!world || !world->is_own()) {
    throw Error(ExitCode::usage, "--task is for the ranks that ddprun bench starts");
  }
  run_rank(plan, Task::parse(task), *world);
  return ExitCode::ok;
}

ExitCode run_program(int argc, char** argv) {
  Request request;
  std::string task;
  std::vector<std::string> plugin_paths;
  CLI::App cli("Measure collectives: backends and algorithms compared", "ddprun bench");
  cli.footer(kExample);
  declare_what(cli, request);
  declare_sizes(cli, request);
  declare_how(cli, request);
  declare_results(cli, request);
  cli.add_option("--task", task)->group("");  // hidden: for the ranks
  console::add_plugin_path(cli, plugin_paths);
  if (const auto end = console::parse(cli, argc, argv)) return *end;
  return run_as_asked(request, task, plugin::Registry::standard(plugin_paths), {argv, argv + argc});
}

}  // namespace
}  // namespace ddprun::bench

int main(int argc, char** argv) {
  return ddprun::console::run_program([&] { return ddprun::bench::run_program(argc, argv); });
}
