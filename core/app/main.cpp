#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <new>

#include "app/bench_options.hpp"
#include "app/commands.hpp"
#include "app/compare_options.hpp"
#include "app/process.hpp"
#include "app/report_options.hpp"
#include "base/log.hpp"
#include "ddprun/plugin/words.hpp"
#include "tools/data/catalogue.hpp"
#include "launch/supervisor.hpp"
#include "train/device/cuda.hpp"

namespace {

using namespace ddprun;

using Command = std::function<ExitCode(const app::Arguments&)>;

constexpr const char* kFooter =
    "Exit codes: 0 ok; 1 training or set-up failed; 2 usage, config or data; 3 plugin; 4 the ranks did not meet;\n"
    "5 a peer died or the ranks disagree; 6 a gate failed; 130 / 143 interrupted / terminated.";

// For a command line that asks for nothing.
ExitCode show_help(const CLI::App& cli) {
  const std::string above = cli.get_parent() == nullptr ? "" : cli.get_parent()->get_name();
  std::fputs(cli.help(above).c_str(), stderr);
  return ExitCode::usage;
}

// An option that is given any number of times, with one value each: what follows the value is not its own.
CLI::Option* declare_list(CLI::App& to, const std::string& name, std::vector<std::string>& values,
                          const std::string& value_name, const std::string& help) {
  return to.add_option(name, values, help)->type_name(value_name)->expected(1)->allow_extra_args(false)->take_all();
}

void declare_plugin_path(CLI::App& to, app::Arguments& arguments) {
  declare_list(to, "--plugin-path", arguments.plugin_paths, "DIR", "A folder of plugins, searched first; any number");
}

CLI::Option* declare_overrides(CLI::App& to, app::Arguments& arguments) {
  const std::string help = "Override a key: --set comm.algorithm=ring; any number";
  return declare_list(to, "--set", arguments.overrides, "KEY=VALUE", help);
}

// `ddprun data info`: the data set by its name, or that of a config; then which sample is shown, and how.
void declare_data_info(CLI::App& data, app::Arguments& arguments, Command& command) {
  auto* info = data.add_subcommand("info", "Show shapes, value ranges, classes and a sample of a data set");
  info->add_option("dataset", arguments.data_set, "A data set's name, or a plugin's name or path")->type_name("NAME");
  auto* config = info->add_option("--config", arguments.config, "Take data.* and the seed of an experiment");
  config->type_name("FILE");
  declare_overrides(*info, arguments)->needs(config);
  info->add_option("--root", arguments.root, "The folder of its files")->type_name("DIR")->excludes(config);
  const std::string about_options = "As data.options: --option samples=100; any number";
  declare_list(*info, "--option", arguments.options, "KEY=VALUE", about_options)->excludes(config);
  info->add_option("--seed", arguments.seed, "Of what is random about it")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->excludes(config);
  declare_plugin_path(*info, arguments);
  info->add_option("--sample", arguments.sample, "The sample to show")->capture_default_str();
  info->add_option("--split", arguments.split, "Of which split")
      ->check(CLI::IsMember({"train", "test"}))
      ->capture_default_str();
  info->add_option("--epoch", arguments.epoch, "As a training sees it in this epoch, from 0")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  auto* png = info->add_option("--png", arguments.png, "Write the sample into a PNG instead")->type_name("FILE");
  info->add_option("--scale", arguments.scale, "Enlarge the PNG so many times")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->needs(png);
  info->final_callback([&] { command = app::data_info; });
}

// `ddprun data ...`; without a further word it prints what there is.
void declare_data(CLI::App& cli, app::Arguments& arguments, Command& command) {
  auto* data = cli.add_subcommand("data", "Get and look at data sets");
  data->require_subcommand(0, 1);
  data->final_callback([&, data] {
    if (!command) command = [data](const app::Arguments&) { return show_help(*data); };
  });

  auto* fetch = data->add_subcommand("fetch", "Download a data set, verify it, and go on where a download was cut");
  fetch->add_option("dataset", arguments.data_set, quoted_list(fetch::data_set_names()))->type_name("NAME");
  fetch->add_option("--root", arguments.root, "The folder that it goes into")->type_name("DIR");
  fetch->add_option("--mirror", arguments.mirror, "Where the files lie instead of their official place")
      ->type_name("URL");
  fetch->final_callback([&] { command = app::data_fetch; });

  declare_data_info(*data, arguments, command);
}

// Declares the command line and notes which command it asks for.
void declare(CLI::App& cli, app::Arguments& arguments, Command& command) {
  cli.footer(kFooter);
  cli.require_subcommand(0, 1);
  auto* config = cli.add_option("--config", arguments.config, "The experiment to run")->type_name("FILE");
  declare_overrides(cli, arguments);
  declare_plugin_path(cli, arguments);

  auto* quiet = cli.add_flag("-q,--quiet", arguments.quiet, "Print errors and the results alone");
  cli.add_flag("-v,--verbose", arguments.verbose, "Print all there is to tell")->excludes(quiet);

  auto* validate = cli.add_subcommand("validate", "Check an experiment, its plugins and data included; start nothing");
  validate->add_option("file", arguments.config, "The experiment")->required()->type_name("FILE");
  declare_overrides(*validate, arguments);
  declare_plugin_path(*validate, arguments);
  validate->final_callback([&] { command = app::validate; });

  auto* evaluate = cli.add_subcommand("evaluate", "Judge the weights of a checkpoint on the test set");
  evaluate->add_option("--checkpoint", arguments.checkpoint, "A file, or a run folder: its newest")
      ->required()
      ->type_name("PATH");
  evaluate->add_option("--config", arguments.config, "The experiment; else that of the run folder")->type_name("FILE");
  declare_overrides(*evaluate, arguments);
  declare_plugin_path(*evaluate, arguments);
  evaluate->final_callback([&] { command = app::evaluate; });

  auto* plugins = cli.add_subcommand("plugins", "List the plugins that can be found");
  declare_plugin_path(*plugins, arguments);
  plugins->final_callback([&] { command = app::plugins; });

  declare_data(cli, arguments, command);

  auto* bench = cli.add_subcommand("bench", "Measure collectives: backends and algorithms side by side");
  app::declare_bench_options(*bench, arguments.bench, arguments.bench_task);
  declare_plugin_path(*bench, arguments);
  bench->final_callback([&] { command = app::bench; });

  auto* compare = cli.add_subcommand("compare", "Which is faster, by how much, how sure, and do they learn the same?");
  app::declare_compare_options(*compare, arguments.compare);
  declare_overrides(*compare, arguments);
  declare_plugin_path(*compare, arguments);
  compare->final_callback([&] { command = app::compare; });

  auto* sweep = cli.add_subcommand("sweep", "Try an experiment with many settings, and rank them");
  app::declare_sweep_options(*sweep, arguments.sweep);
  declare_overrides(*sweep, arguments);
  declare_plugin_path(*sweep, arguments);
  sweep->final_callback([&] { command = app::sweep; });

  auto* report = cli.add_subcommand("report", "Make a page with charts of runs, or of benchmarks");
  app::declare_report_options(*report, arguments.report);
  report->final_callback([&] { command = app::report; });

  auto* exported = cli.add_subcommand("export", "Write a run's records as CSV or for TensorBoard");
  app::declare_export_options(*exported, arguments.exported);
  exported->final_callback([&] { command = app::export_run; });

  const std::string about_version = "Print the versions of ddprun, Torch, every plugin and its library, the compiler";
  auto* version = cli.add_flag("--version", about_version);
  cli.final_callback([&, config, version] {
    if (version->count() > 0) command = app::version;
    if (!command && config->count() > 0) command = app::train;
  });
}

// All words of the command line: subcommands and long options, but hidden ones.
void add_names(const CLI::App& cli, std::vector<std::string>& names) {
  for (const CLI::Option* option :
       cli.get_options([](const CLI::Option* found) { return !found->get_group().empty(); })) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const CLI::App* subcommand : cli.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(subcommand->get_name());
    add_names(*subcommand, names);
  }
}

// CLI11's words, but for those that are of a programmer's kind.
std::string reason_of(const CLI::ParseError& error) {
  const std::string text = error.what();
  const std::string unreadable = "Could not convert: ";
  if (text.starts_with(unreadable)) return text.substr(unreadable.size()) + ": expected a number";
  if (text.ends_with(" missing")) return text.substr(0, text.find(':')) + ": its value is missing";
  return text;
}

// The command, with its subcommand's words, whose help says more.
std::string command_of(const CLI::App& cli) {
  const auto below = cli.get_subcommands();
  return cli.get_name() + (below.empty() ? "" : " " + command_of(*below.front()));
}

// What the command line is told about itself: one line, with the likeliest remedy.
std::string explain(const CLI::App& cli, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = cli.remaining(true);
  if (unknown.empty()) return reason_of(error);
  std::string text = "unknown argument \"" + unknown[0] + "\"";
  if (std::filesystem::exists(unknown[0])) return text + "; to run a file, use --config " + unknown[0];
  std::vector<std::string> names;
  add_names(cli, names);
  return text + did_you_mean(unknown[0], names);
}

ExitCode refuse(const CLI::App& cli, const std::string& what) {
  log::always("ddprun: " + what + "; " + command_of(cli) + " --help tells what there is");
  return ExitCode::usage;
}

ExitCode run(int argc, char** argv) {
  app::Arguments arguments;
  arguments.argv.assign(argv, argv + argc);
  Command command;
  CLI::App cli("Data-parallel training with pluggable communication backends", "ddprun");
  declare(cli, arguments, command);
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return static_cast<ExitCode>(cli.exit(error));  // --help
    return refuse(cli, explain(cli, error));
  }
  if (!command && argc > 1) return refuse(cli, "--config FILE is missing");
  return command ? command(arguments) : show_help(cli);
}

}  // namespace

int main(int argc, char** argv) {
  launch::follow_launcher();
  ExitCode code = ExitCode::ok;
  try {
    code = run(argc, argv);
  } catch (const Error& error) {
    code = app::tell(error.code(), error.what());
  } catch (const c10::Error& error) {
    code = app::tell(ExitCode::failure, train::words_of(error));
  } catch (const std::bad_alloc&) {
    code = app::tell(ExitCode::failure, "out of memory");
  } catch (const std::exception& error) {
    code = app::tell(ExitCode::failure, error.what());
  }
  return static_cast<int>(code);
}
