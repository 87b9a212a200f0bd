#include "app/bench_options.hpp"

namespace ddprun::app {
namespace {

constexpr const char* kExample =
    "Example: ddprun bench -b 4 -e 64M -f 4 -n 50 -w 10 --backend gloo --algorithm ring,tree --ranks 2,4\n"
    "Every algorithm of every backend at every number of ranks is measured once per round, by ranks started for it "
    "alone.\n"
    "docs/benchmarking.md says how.";

// A list with commas.
template <class Values>
CLI::Option* declare_list(CLI::App& to, const std::string& name, Values& values, const std::string& help,
                          const std::string& type) {
  return to.add_option(name, values, help)->delimiter(',')->type_name(type);
}

void declare_what(CLI::App& to, bench::Request& request) {
  declare_list(to, "--backend", request.backends, "Communication plugins, by name or path", "NAME,...")
      ->capture_default_str();
  declare_list(to, "--algorithm", request.algorithms,
               "Of allreduce: auto, or what the plugins declare (default: auto; under --tune all that are declared)",
               "NAME,...");
  declare_list(to, "--ranks", request.ranks, "Processes on this host", "N,...")->capture_default_str();
  declare_list(to, "--collective", request.collectives, "allreduce, broadcast, allgather, reduce_scatter", "NAME,...")
      ->capture_default_str();
  to.add_option("--device", request.device, "Where the buffers are: cpu, cuda")->capture_default_str();
  declare_list(to, "--devices", request.devices,
               "Under --device cuda: the GPU of each rank (default: of its own number)", "N,...");
  to.add_option("--option", request.options, "comm.options of all backends, or of one: gloo.interface=lo; any number")
      ->type_name("[BACKEND.]KEY=VALUE")
      ->expected(1)
      ->take_all();
}

void declare_sizes(CLI::App& to, bench::Request& request) {
  auto* least = to.add_option("-b,--minbytes", request.min_bytes, "Smallest size in bytes");
  least->type_name("SIZE")->capture_default_str();
  auto* most = to.add_option("-e,--maxbytes", request.max_bytes, "Largest size");
  most->type_name("SIZE")->capture_default_str();
  auto* factor = to.add_option("-f,--stepfactor", request.factor, "From a size to the next: multiply by");
  factor->capture_default_str();
  auto* step = to.add_option("-i,--stepbytes", request.step_bytes, "... or add");
  step->type_name("SIZE")->excludes(factor);
  auto* listed = declare_list(to, "--sizes", request.sizes, "These sizes, ascending, instead", "SIZE,...");
  listed->excludes(least)->excludes(most)->excludes(factor)->excludes(step);
}

void declare_how(CLI::App& to, bench::Request& request) {
  to.add_option("-n,--iters", request.iterations, "Samples of each case in each round")->capture_default_str();
  to.add_option("-w,--warmup_iters", request.warmup, "Calls before them")->capture_default_str();
  to.add_option("-c,--check", request.checks, "Calls whose results are checked, in each round; 0 for none")
      ->capture_default_str();
  to.add_option("-d,--datatype", request.dtype,
                "int8, uint8, int16, int32, int64, half, float, double, bfloat16; PyTorch's names as well")
      ->type_name("TYPE")
      ->capture_default_str();
  to.add_option("-o,--op", request.op, "sum, prod, min, max, avg")->type_name("OP")->capture_default_str();
  to.add_option("-r,--root", request.root, "Of a broadcast")->capture_default_str();
  to.add_option("--rounds", request.rounds, "Turns of all variants, in changing order")->capture_default_str();
  to.add_option("--timeout", request.timeout, "Longest time for joining, and for one collective")
      ->type_name("SECONDS")
      ->capture_default_str();
}

void declare_results(CLI::App& to, bench::Request& request) {
  to.add_option("--json", request.json, "Write all samples and the environment")->type_name("FILE");
  to.add_option("--min-busbw", request.min_busbw, "Exit with 6 where busbw at the largest size is below")
      ->type_name("GB/S");
  to.add_option("--tune", request.tune, "Write which algorithm is fastest where, for comm.options.tuning")
      ->type_name("FILE");
}

}  // namespace

void declare_bench_options(CLI::App& to, bench::Request& request, std::string& task) {
  to.footer(kExample);
  declare_what(to, request);
  declare_sizes(to, request);
  declare_how(to, request);
  declare_results(to, request);
  to.add_option("--task", task)->group("");  // hidden: for the ranks
}

}  // namespace ddprun::app
