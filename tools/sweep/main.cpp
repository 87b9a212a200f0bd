// ddprun-sweep: runs an experiment with many settings and ranks them.
#include "cli/config/experiment.hpp"
#include "tools/compare/running_options.hpp"
#include "tools/sweep/sweep.hpp"

namespace ddprun::sweep {
namespace {

constexpr const char* kExample =
    "Examples: ddprun sweep --config exp.toml --vary optimizer.lr=0.01,0.1 --vary strategy.bucket_cap_mb=1,25\n"
    "          ddprun sweep --config exp.toml --vary optimizer.lr=0.001..0.1 --random 20 --by validation.accuracy\n"
    "See docs/comparing.md for when a trial stops early.";

void declare(CLI::App& to, Request& request) {
  console::add_config(to, request.config);
  const std::string about_vary = "The values of a key to try, or with --random a range. May be repeated.";
  console::add_key_values(to, "--vary", request.vary, "KEY=VALUE,...|KEY=LOW..HIGH", about_vary);
  auto* random = to.add_option("--random", request.random, "Try N random settings instead of every combination.");
  random->type_name("N");
  to.add_option("--seed", request.seed, "The seed of --random.")->capture_default_str()->needs(random);
  to.add_option("--by", request.by,
                "Rank by throughput, or by the loss or accuracy on a set: test.loss, "
                "validation.accuracy. Default: validation.loss if there are validation sets, "
                "otherwise test.loss.")
      ->type_name("MEASURE");
  to.add_flag_callback(
      "--all", [&request] { request.stop_losers = false; }, "Run every trial to its end.");
}

ExitCode run_program(int argc, char** argv) {
  Request request;
  CLI::App cli(std::string(console::about_tool("sweep")), "ddprun sweep");
  cli.footer(kExample);
  declare(cli, request);
  compare::add_running_options(cli, request.running);
  console::add_overrides(cli, request.overrides);
  if (const auto end = console::parse(cli, argc, argv, config::setting_for_option)) return *end;
  request.running.program = console::find_program("ddprun");
  return run(request);
}

}  // namespace
}  // namespace ddprun::sweep

int main(int argc, char** argv) {
  return ddprun::console::run_program([&] { return ddprun::sweep::run_program(argc, argv); });
}
