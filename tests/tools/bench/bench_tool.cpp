// `ddprun bench` without the rest of ddprun, and so without torch: the same options and the same code behind them, for
// tests that run under the sanitizers too.
#include "app/bench_options.hpp"
#include "app/commands.hpp"
#include "app/process.hpp"
#include "launch/supervisor.hpp"

using namespace ddprun;

int main(int argc, char** argv) {
  launch::follow_launcher();
  app::Arguments arguments;
  arguments.argv.assign(argv, argv + argc);
  CLI::App cli("bench", "bench");
  app::declare_bench_options(cli, arguments.bench, arguments.bench_task);
  cli.add_option("--plugin-path", arguments.plugin_paths);
  CLI11_PARSE(cli, argc, argv);
  try {
    return static_cast<int>(app::bench(arguments));
  } catch (const Error& error) {
    return static_cast<int>(app::tell(error.code(), error.what()));
  } catch (const std::exception& error) {
    return static_cast<int>(app::tell(ExitCode::failure, error.what()));
  }
}
