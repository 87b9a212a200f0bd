#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/console/command_line.hpp"
#include "cli/console/program.hpp"

namespace ddprun::app {
namespace {

using Command = std::function<ExitCode(const Arguments&)>;

constexpr const char* kExitCodes =
    "Exit codes: 0 ok; 1 training or set-up failed; 2 usage, config or data; 3 plugin; 4 the ranks did not meet;\n"
    "5 a peer died or the ranks disagree; 6 a gate failed; 130 / 143 interrupted / terminated.";

constexpr const char* kTool = "ddprun-";

// The path of the program `ddprun-<name>`, a subcommand that is a separate program, in ddprun's own folder or on PATH;
// "" if there is none.
std::string find_tool(const std::string& name) {
  return name.find('/') == std::string::npos ? console::find_program(kTool + name) : "";
}

// Those that were found, sorted.
std::vector<std::string> tool_names() {
  namespace fs = std::filesystem;
  std::set<std::string> names;
  for (const std::string& folder : console::program_folders()) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      const std::string file = entry->path().filename();
      if (!file.starts_with(kTool)) continue;
      const std::string name = file.substr(std::strlen(kTool));
      if (!find_tool(name).empty()) names.insert(name);
    }
  }
  return {names.begin(), names.end()};
}

void add_nodes(CLI::App& to, console::NodeOptions& nodes) {
  const auto read = [&nodes](const std::string& text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos) return text;
    const auto least = parse_number<int>(text.substr(0, colon)), most = parse_number<int>(text.substr(colon + 1));
    if (least.value_or(0) < 1 || !most) return text;
    nodes.least = *least;
    return std::to_string(*most);
  };
  console::add_node_options(to, nodes, "-n,");
  to.get_option("--nnodes")
      ->transform(read, "")
      ->description("The number of hosts, each with the same command. LEAST:N: ranks and hosts may die.");
}

void declare_subcommands(CLI::App& cli, Arguments& arguments, Command& command) {
  auto* validate =
      cli.add_subcommand("validate", "Check experiments, their plugins and their data, and start nothing.");
  validate->add_option("--config,files", arguments.configs, "The experiments; each is checked.")->type_name("FILE");
  validate->add_option("--ranks", arguments.ranks, "Check ddp for N ranks on all hosts instead of launch.nproc.")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20));
  console::add_overrides(*validate, arguments.overrides);
  console::add_plugin_path(*validate, arguments.plugin_paths);
  validate->final_callback([&] { command = app::validate; });

  auto* evaluate = cli.add_subcommand("evaluate", "Evaluate the weights of a checkpoint on the test set.");
  evaluate
      ->add_option(
          "--checkpoint", arguments.checkpoint,
          "The checkpoint: a file, or a run folder for its newest one. latest: the newest run in the folder runs.")
      ->required()
      ->type_name("PATH");
  console::add_config(*evaluate, arguments.config, "The experiment. The default is that of the run folder.");
  console::add_overrides(*evaluate, arguments.overrides);
  console::add_plugin_path(*evaluate, arguments.plugin_paths);
  evaluate->final_callback([&] { command = app::evaluate; });

  auto* launch = cli.add_subcommand("launch", "Start any program as ranks, with torchrun's variables (RANK, ...).");
  add_nodes(*launch, arguments.nodes);
  console::add_insecure(*launch, arguments.nodes);
  launch->add_option("--grace", arguments.grace, "How long the ranks may take to end after SIGINT or SIGTERM: \"30s\".")
      ->type_name("TIME");
  launch->add_option("program", arguments.program, "The program and its arguments.")->required()->type_name("PROGRAM");
  launch->positionals_at_end();
  launch->prefix_command();
  launch->final_callback([&] { command = app::launch; });

  auto* plugins = cli.add_subcommand("plugins", "List the plugins that can be found.");
  console::add_plugin_path(*plugins, arguments.plugin_paths);
  plugins->add_flag("-v,--verbose", arguments.verbose, "Print the options of each plugin too.");
  plugins->final_callback([&] { command = app::plugins; });
}

// One line per tool.
std::string describe_tools() {
  constexpr std::size_t column = 30;  // where CLI11's descriptions begin
  std::string text;
  for (const std::string& name : tool_names()) {
    std::string line = "  " + name;
    if (const std::string_view about = console::about_tool(name); !about.empty()) {
      line.resize(std::max(column, line.size() + 1), ' ');
      line += about;
    }
    text += line + '\n';
  }
  return text;
}

// Declares the command line and records which command it selects.
void declare(CLI::App& cli, Arguments& arguments, Command& command) {
  cli.require_subcommand(0, 1);
  auto* config = console::add_config(cli, arguments.config, "The experiment to run.");
  console::add_overrides(cli, arguments.overrides);
  console::add_plugin_path(cli, arguments.plugin_paths);
  cli.footer([] { return "Tools:\n" + describe_tools() + "\n" + console::kAboutPlugins + "\n" + kExitCodes; });
  add_nodes(cli, arguments.nodes);
  auto* quiet = cli.add_flag("-q,--quiet", arguments.quiet, "Print only errors and the results.");
  cli.add_flag("-v,--verbose", arguments.verbose, "Print details too.")->excludes(quiet);
  auto* version = cli.add_flag("--version")->description("Print the versions of ddprun, Torch and the compiler.");
  declare_subcommands(cli, arguments, command);
  cli.final_callback([&, config, version] {
    if (version->count() > 0) command = app::version;
    if (!command && config->count() > 0) command = app::train;
  });
}

// A file that exists, or what can only be meant as one: exp.tml, but not optimizer.lr=0.1.
bool is_path(const std::string& argument) {
  const bool has_form = argument.find_first_of("./") != std::string::npos && argument.find('=') == std::string::npos;
  return has_form || std::filesystem::is_regular_file(argument);
}

}  // namespace

void run_tool(const std::string& path, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), path);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::execv(path.c_str(), argv.data());
  throw Error(ExitCode::failure, "cannot start " + path + ": " + std::strerror(errno));
}

ExitCode run(int argc, char** argv) {
  Arguments arguments;
  arguments.argv.assign(argv, argv + argc);
  Command command;
  const auto cli =
      console::make_command("Train models data-parallel, with communication backends as plugins.", "ddprun");
  declare(*cli, arguments, command);
  const std::string first = argc > 1 ? argv[1] : "-";
  const auto has_name = [&](const CLI::App* subcommand) { return subcommand->get_name() == first; };
  if (!first.starts_with('-') && !is_path(first) && cli->get_subcommands(has_name).empty()) {
    if (const std::string tool = find_tool(first); !tool.empty()) run_tool(tool, {argv + 2, argv + argc});
    return console::refuse(*cli, console::unknown_argument(*cli, first, tool_names()));
  }
  if (const auto end = console::parse(*cli, argc, argv)) return *end;
  const bool is_missing =
      cli->got_subcommand("validate") ? arguments.configs.empty() : !command && argc > 1 && arguments.config.empty();
  if (is_missing) {
    return console::refuse(*cli, "the experiment is missing: give FILE, or --config FILE");
  }
  return command ? command(arguments) : console::show_help(*cli);
}

}  // namespace ddprun::app
