#include "app/compare_options.hpp"

namespace ddprun::app {
namespace {

constexpr const char* kSweepExample =
    "Examples: ddprun sweep --config exp.toml --vary optimizer.lr=0.01,0.1 --vary strategy.bucket_mb=1,25\n"
    "          ddprun sweep --config exp.toml --vary optimizer.lr=0.001..0.1 --random 20 --by test.accuracy\n"
    "docs/comparing.md says when a trial is stopped early.";

constexpr const char* kCompareExample =
    "Examples: ddprun compare a.toml b.toml\n"
    "          ddprun compare --config exp.toml --vary comm.backend=shm,ucx,gloo\n"
    "          ddprun compare --config exp.toml --vary strategy.kind=single,dp,ddp --precision 2%\n"
    "          ddprun compare --runs runs/old-* --runs runs/new-* --gate '2/1 <= 1.02'\n"
    "docs/comparing.md says how it is measured, and how sure the answer is.";

// An option with one value, given any number of times.
CLI::Option* declare_each(CLI::App& to, const std::string& name, std::vector<std::string>& values,
                          const std::string& help, const std::string& type) {
  return to.add_option(name, values, help)->type_name(type)->expected(1)->allow_extra_args(false)->take_all();
}

void declare_what(CLI::App& to, compare::Request& request) {
  to.add_option("inputs", request.inputs, "Configs to run, or run folders to read")->type_name("FILE|DIR...");
  auto* config = to.add_option("--config", request.config, "One experiment, with --vary")->type_name("FILE");
  const std::string about_vary = "Values of a key, each a variant; several keys: every combination";
  declare_each(to, "--vary", request.vary, about_vary, "KEY=VALUE,...")->needs(config);
  to.add_option("--runs", request.runs, "Earlier runs of one variant; once for each variant")->type_name("DIR...");
  to.add_flag("--allow-different", request.allow_different,
              "Compare other batches, data, seeds or lengths nevertheless");
}

void declare_how(CLI::App& to, compare::Request& request) {
  to.add_option("--repeats", request.repeats, "Runs of each variant")->capture_default_str();
  to.add_option_function<std::string>(
        "--precision",
        [&request](const std::string& text) { request.precision = compare::parse_share("--precision", text); },
        "Go on in rounds until each interval is within this share of its ratio, as 2%")
      ->type_name("SHARE");
  to.add_option("--max-repeats", request.max_repeats, "... but no further than this")->capture_default_str();
  to.add_option("--warmup-steps", request.warmup_steps, "First steps of each run that no figure counts")
      ->capture_default_str();
  to.add_flag("--aa", request.twin, "Run the first variant twice, to show how large a difference is noise");
  to.add_option("--parity-steps", request.parity_steps, "Steps whose gradients and weights are compared; 0: none")
      ->capture_default_str();
  const std::string about_gate = "Exit with 6 unless it is shown: 'b/a <= 1.02'; any number";
  declare_each(to, "--gate", request.gates, about_gate, "EXPRESSION");
  to.add_option("--seed", request.seed, "Of the bootstrap")->capture_default_str();
}

void declare_running_options(CLI::App& to, compare::Running& running) {
  to.add_option("--timeout", running.timeout, "Longest time for one run; 0: none")
      ->type_name("SECONDS")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  to.add_option("--output", running.output, "Where its folder is made (default: experiment.output)")->type_name("DIR");
  auto* quiet = to.add_flag("-q,--quiet", running.quiet, "Print the results alone");
  to.add_flag("-v,--verbose", running.verbose, "Print what the runs print, too")->excludes(quiet);
}

}  // namespace

void declare_compare_options(CLI::App& to, compare::Request& request) {
  to.footer(kCompareExample);
  declare_what(to, request);
  declare_how(to, request);
  declare_running_options(to, request.running);
}

void declare_sweep_options(CLI::App& to, compare::SweepRequest& request) {
  to.footer(kSweepExample);
  to.add_option("--config", request.config, "The experiment")->type_name("FILE");
  const std::string about_vary = "Values of a key, or with --random a range; any number";
  declare_each(to, "--vary", request.vary, about_vary, "KEY=VALUE,...|KEY=LOW..HIGH");
  auto* random = to.add_option("--random", request.random, "So many trials, drawn; otherwise every combination");
  random->type_name("N");
  to.add_option("--seed", request.seed, "Of what is drawn")->capture_default_str()->needs(random);
  to.add_option("--by", request.by, "test.loss, test.accuracy or throughput")
      ->type_name("MEASURE")
      ->capture_default_str();
  to.add_flag_callback(
      "--all", [&request] { request.stop_losers = false; }, "Run every trial to its end");
  declare_running_options(to, request.running);
}

}  // namespace ddprun::app
