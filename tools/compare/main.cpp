// ddprun-compare: which of several training runs is faster, by how much, and with what confidence.
#include "tools/compare/compare.hpp"
#include "tools/compare/running_options.hpp"

namespace ddprun::compare {
namespace {

constexpr const char* kExample =
    "Examples: ddprun compare a.toml b.toml\n"
    "          ddprun compare --config exp.toml --vary comm.backend=shm,ucx,gloo\n"
    "          ddprun compare --config exp.toml --vary strategy.kind=single,dp,ddp --precision 2%\n"
    "          ddprun compare --runs runs/old-* --runs runs/new-* --gate '2/1 <= 1.02'\n"
    "          ddprun compare --vary backend=gloo,ddprun_shm -- torchrun --nproc-per-node 2 train.py\n"
    "A program that trains with PyTorch: after --, with its arguments. The keys of --vary and --change are then "
    "backend;\n"
    "env.NAME, a variable; and any other NAME, which replaces {NAME} in an argument.\n"
    "Over several hosts: --nnodes on each of them, or start it as the ranks of srun, mpirun or torchrun.\n"
    "See docs/comparing.md for the method and its confidence.";

void declare_what(CLI::App& to, Request& request) {
  to.add_option("inputs", request.inputs, "The configs to run, or the folders of earlier runs.")
      ->type_name("FILE|DIR...");
  to.add_option("--config", request.config, "The experiment for --vary or --change.")->type_name("FILE");
  console::add_repeated(to, "--command", request.commands, "NAME=PROGRAM",
                        "A program, as the shell takes it, is a variant. Give it once for each variant.");
  const std::string about_vary = "Make a variant for each value of a key, or for every combination if it is repeated.";
  auto* vary = console::add_key_values(to, "--vary", request.vary, "KEY=VALUE,...", about_vary);
  const std::string about_change =
      "Compare the experiment as it is with one variant that has this value. If it is repeated, it has all values.";
  console::add_key_values(to, "--change", request.change, "KEY=VALUE", about_change)->excludes(vary);
  to.add_option("--runs", request.runs, "The folders of earlier runs of one variant. Give it once for each variant.")
      ->type_name("DIR...");
  to.add_flag("--allow-different", request.allow_different, "Allow different batches, data, seeds or lengths.");
}

void declare_how(CLI::App& to, Request& request) {
  to.add_option("--repeats", request.repeats, "The number of runs of each variant.")->capture_default_str();
  to.add_option_function<std::string>(
        "--precision", [&request](const std::string& text) { request.precision = parse_share("--precision", text); },
        "Add rounds until each interval is within this fraction of its ratio, such as 2%.")
      ->type_name("SHARE");
  to.add_option("--max-repeats", request.max_repeats, "The largest number of runs of each variant with --precision.")
      ->capture_default_str();
  to.add_option("--warmup-steps", request.warmup_steps, "The number of first steps of each run that are left out.")
      ->capture_default_str();
  to.add_flag("--aa", request.twin, "Run the first variant twice, to measure the noise.");
  to.add_option("--parity-steps", request.parity_steps, "The number of steps whose gradients and weights are compared.")
      ->capture_default_str();
  const std::string about_gate = "Exit with code 6 unless the runs show this, such as 'b/a <= 1.02'. May be repeated.";
  console::add_repeated(to, "--gate", request.gates, "EXPRESSION", about_gate);
  to.add_option("--seed", request.seed, "The seed of the bootstrap.")->capture_default_str();
}

ExitCode run_program(int argc, char** argv) {
  Request request;
  const auto cli = console::tool_command("compare");
  cli->footer(kExample);
  declare_what(*cli, request);
  declare_how(*cli, request);
  add_running_options(*cli, request.running);
  console::add_overrides(*cli, request.overrides);
  console::add_node_options(*cli, request.nodes);
  char** const dashes = std::find(argv, argv + argc, std::string("--"));
  if (dashes != argv + argc) request.program.assign(dashes + 1, argv + argc);
  if (const auto end = console::parse(*cli, static_cast<int>(dashes - argv), argv)) return *end;
  const bool is_one = !request.vary.empty() || !request.change.empty();
  if (is_one && request.config.empty() && request.inputs.size() == 1) {
    request.config = request.inputs.front();
    request.inputs.clear();
  }
  request.running.program = console::find_program("ddprun");
  return run(request);
}

}  // namespace
}  // namespace ddprun::compare

int main(int argc, char** argv) {
  return ddprun::console::run_program([&] { return ddprun::compare::run_program(argc, argv); });
}
