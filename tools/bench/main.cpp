// ddprun-bench: measures the collectives of communication plugins.
#include <chrono>

#include "cli/config/experiment.hpp"
#include "cli/console/command_line.hpp"
#include "cli/console/program.hpp"
#include "comm/plugin_backend.hpp"
#include "launch/job_folder.hpp"
#include "launch/rendezvous.hpp"
#include "launch/supervisor.hpp"
#include "launch/world.hpp"
#include "tools/bench/bench.hpp"

namespace ddprun::bench {
namespace {

constexpr const char* kExample =
    "Example: ddprun bench -b 4 -e 64M -f 4 -n 50 -w 10 --backend gloo --algorithm ring,tree --ranks 2,4\n"
    "Every algorithm of every backend at every number of ranks is measured once per round, by newly started ranks "
    "alone.\n"
    "Over several hosts: --nnodes on each of them, or start it as the ranks of srun, mpirun or torchrun.\n"
    "See docs/benchmarking.md.";

// A comma-separated list.
template <class Values>
CLI::Option* declare_list(CLI::App& to, const std::string& name, Values& values, const std::string& help,
                          const std::string& type) {
  return to.add_option(name, values, help)->delimiter(',')->type_name(type);
}

void declare_what(CLI::App& to, Request& request) {
  declare_list(to, "--backend", request.backends, "The plugins, by name or path, or c10d:NAME of PyTorch.", "NAME,...")
      ->capture_default_str();
  declare_list(
      to, "--algorithm", request.algorithms,
      "The allreduce algorithms: auto, or those of the plugins. The default is auto, and with --tune all of them.",
      "NAME,...");
  declare_list(to, "--ranks", request.ranks, "The numbers of processes on this host.", "N,...")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  declare_list(to, "--collective", request.collectives,
               "The collectives: allreduce, broadcast, allgather, reduce_scatter.", "NAME,...")
      ->capture_default_str();
  to.add_option("--device", request.device, "Where the buffers are: cpu or cuda.")->capture_default_str();
  declare_list(to, "--devices", request.devices,
               "With --device cuda, the GPU of each rank. By default, rank i uses GPU i.", "N,...");
  to.add_option("--option", request.options,
                "An option of all backends, or of one, such as gloo.interface=lo. May be repeated.")
      ->type_name("[BACKEND.]KEY=VALUE")
      ->expected(1)
      ->take_all();
}

void declare_sizes(CLI::App& to, Request& request) {
  const auto as_size = [](CLI::Option* option) {
    constexpr uint64_t kMost = uint64_t{1} << 40;
    const auto number_error = [](std::string& text) -> std::string {  // CLI11 takes a unit alone
      return text[0] >= '0' && text[0] <= '9' ? "" : text + ": expected a number of bytes, such as 4, 64K, 1M or 2G";
    };
    option->transform(CLI::AsSizeValue(false));           // K, M and G: powers of 1024
    option->transform(CLI::Validator(number_error, ""));  // runs first
    return option->check(CLI::Range(uint64_t{1}, kMost));
  };
  auto* least = as_size(to.add_option("-b,--minbytes", request.min_bytes, "The smallest size in bytes."));
  least->type_name("SIZE")->default_str("4");
  auto* most = as_size(to.add_option("-e,--maxbytes", request.max_bytes, "The largest size."));
  most->type_name("SIZE")->default_str("64M");
  auto* factor = to.add_option("-f,--stepfactor", request.factor, "The factor from one size to the next.");
  factor->check(CLI::Range(2, 1 << 20))->capture_default_str();
  auto* step =
      as_size(to.add_option("-i,--stepbytes", request.step_bytes, "The difference from one size to the next."));
  step->type_name("SIZE")->excludes(factor);
  auto* listed = as_size(
      declare_list(to, "--sizes", request.sizes, "The sizes, in ascending order, instead of -b and -e.", "SIZE,..."));
  listed->excludes(least)->excludes(most)->excludes(factor)->excludes(step);
}

void declare_how(CLI::App& to, Request& request) {
  to.add_option("-n,--iters", request.each.samples, "The number of samples of each case in each round.")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  to.add_option("-w,--warmup_iters", request.each.warmup, "The number of calls before the samples.")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  to.add_option("-c,--check", request.each.checks, "The number of calls in each round whose results are checked.")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  to.add_option("-d,--datatype", request.dtype,
                "The type: int8, uint8, int16, int32, int64, half, float, double, bfloat16, or a name of PyTorch's.")
      ->type_name("TYPE")
      ->capture_default_str();
  to.add_option("-o,--op", request.op, "The operation: sum, prod, min, max or avg.")
      ->type_name("OP")
      ->capture_default_str();
  to.add_option("-r,--root", request.root, "The rank that broadcasts.")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  to.add_option("--rounds", request.rounds, "The number of rounds. Each runs all variants, in another order.")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  to.add_option("--timeout", request.timeout, "The time limit of the rendezvous, of joining, and of one collective.")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
}

void declare_results(CLI::App& to, Request& request) {
  to.add_option("--json", request.json, "Write all samples and the environment to this file.")->type_name("FILE");
  to.add_option("--min-busbw", request.min_busbw, "Exit with code 6 if busbw at the largest size is lower.")
      ->type_name("GB/S");
  to.add_option("--tune", request.tune,
                "Write the fastest algorithm of each size to this file, for comm.options.tuning.")
      ->type_name("FILE");
}

struct Arguments {
  Request request;
  bool ranks_given = false;
  console::NodeOptions nodes;
  std::optional<Task> task;  // of a rank
  std::vector<std::string> plugin_paths;
  std::vector<std::string> command;  // argv, with the program's path

  std::chrono::milliseconds timeout() const { return config::milliseconds(request.timeout); }
};

// A rank of a job that some launcher has started.
ExitCode run_in_job(Arguments arguments, launch::World world, const plugin::Registry& registry) {
  Request& request = arguments.request;
  if (arguments.ranks_given && request.ranks != std::vector<int64_t>{world.size}) {
    throw Error(ExitCode::usage, "--ranks: " + world.launcher + " has started " + std::to_string(world.size) +
                                     " ranks, and all of them measure: leave out --ranks");
  }
  world.insecure = arguments.nodes.insecure;
  const launch::JobFolder alone;
  auto store = launch::open_store(world, arguments.timeout());
  if (store == nullptr) store = launch::folder_store(alone.path());  // a world of one needs a store too
  request.ranks = {world.size};
  request.ranks_here = world.local_size;
  Plan plan = plan_of(request, registry);
  plan.hosts = compare_plans(plan, *store, world);
  return run_as_rank(plan, arguments.command, *store, world);
}

// The ranks of this host, which are this program again.
ExitCode start_ranks(const Arguments& arguments) {
  if (arguments.ranks_given) {
    throw Error(ExitCode::usage, "--ranks is for one host: with --nnodes, give --nproc-per-node instead");
  }
  launch::Job job = console::job_of(arguments.nodes, arguments.timeout());
  job.command = arguments.command;
  return launch::supervise(job);
}

ExitCode run_as_asked(const Arguments& arguments, const plugin::Registry& registry) {
  const auto world = console::discover(arguments.nodes, std::nullopt);
  if (arguments.task) {
    const Plan plan = plan_of(arguments.request, registry);
    if (!world || !world->is_own() || std::get<1>(*arguments.task) >= plan.variants.size()) {
      throw Error(ExitCode::usage, "--task is for the ranks that ddprun bench starts");
    }
    run_rank(plan, *arguments.task, *world);
    return ExitCode::ok;
  }
  if (world) return run_in_job(arguments, *world, registry);
  if (arguments.nodes.nnodes) return start_ranks(arguments);
  if (arguments.nodes.nproc) {
    throw Error(ExitCode::usage, "--nproc-per-node is for --nnodes; on one host, give --ranks, which takes a list");
  }
  return run(plan_of(arguments.request, registry), arguments.command);
}

ExitCode run_program(int argc, char** argv) {
  Arguments arguments;
  Request& request = arguments.request;
  const auto cli = console::tool_command("bench");
  cli->footer(kExample);
  declare_what(*cli, request);
  declare_sizes(*cli, request);
  declare_how(*cli, request);
  declare_results(*cli, request);
  console::add_node_options(*cli, arguments.nodes);
  console::add_insecure(*cli, arguments.nodes);
  cli->add_option("--task", arguments.task)->group("");  // hidden: for the ranks
  console::add_plugin_path(*cli, arguments.plugin_paths);
  if (const auto end = console::parse(*cli, argc, argv)) return *end;
  arguments.ranks_given = cli->count("--ranks") > 0;
  arguments.command.assign(argv, argv + argc);
  arguments.command[0] = console::this_program();
  return run_as_asked(arguments, plugin::Registry::standard(arguments.plugin_paths));
}

}  // namespace
}  // namespace ddprun::bench

int main(int argc, char** argv) {
  return ddprun::console::run_program([&] {
    const ddprun::ExitCode code = ddprun::bench::run_program(argc, argv);
    if (code == ddprun::ExitCode::ok) ddprun::comm::finish_plugins();
    return code;
  });
}
