// ddprun-tune: chooses how gradients are sent.
#include "tools/compare/running_options.hpp"
#include "tools/tune/tune.hpp"

namespace ddprun::tune {
namespace {

constexpr const char* kExample =
    "Examples: ddprun tune exp.toml --nproc 4\n"
    "          ddprun tune exp.toml --backend gloo,ucx --compression none\n"
    "Over several hosts: the same command on each of them, with --nnodes and --node-rank.\n"
    "docs/tuning-communication.md says how it chooses, and what it does not know.";

constexpr int64_t kFewestSteps = 24;  // of which six are traced, and at least ten are not

void declare(CLI::App& to, Request& request) {
  const auto list = [&](const char* name, std::vector<std::string>& values, const char* help) {
    return to.add_option(name, values, help)->type_name("NAME,...")->delimiter(',');
  };
  console::add_config(to, request.config)->required();
  list("--backend", request.backends, "Also try these communication plugins. The config's own is always tried.");
  list("--algorithm", request.algorithms,
       "Try these algorithms, and the config's own. The default is all that the backends have.");
  request.compression = {"none", "bf16"};
  list("--compression", request.compression, "Try these compressions of gradients: none, bf16, fp16.")
      ->capture_default_str()
      ->check(CLI::IsMember({"none", "bf16", "fp16"}));
  to.add_option("--steps", request.steps,
                "The number of steps of each run. The default is 40 to 4000: the more, the shorter a step is.")
      ->type_name("N")
      ->check(CLI::Range(kFewestSteps, int64_t{1} << 20));
  to.add_option("--rounds", request.rounds, "The number of runs of each side in the comparison at the end.")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(2, 1000));
  to.add_option("--json", request.json, "Also write all figures as JSON.")->type_name("FILE");
}

ExitCode run_program(int argc, char** argv) {
  Request request;
  const auto cli = console::tool_command("tune");
  cli->footer(kExample);
  declare(*cli, request);
  compare::add_running_options(*cli, request.running);
  console::add_overrides(*cli, request.overrides);
  console::add_node_options(*cli, request.nodes);
  if (const auto end = console::parse(*cli, argc, argv)) return *end;
  request.running.program = console::find_program("ddprun");
  return run(request, {argv, argv + argc});
}

}  // namespace
}  // namespace ddprun::tune

int main(int argc, char** argv) {
  return ddprun::console::run_program([&] { return ddprun::tune::run_program(argc, argv); });
}
