#include "cli/console/command_line.hpp"

#include <cstdio>
#include <regex>

#include "base/log.hpp"
#include "cli/console/program.hpp"
#include "ddprun/plugin/comm_plugin.h"
#include "ddprun/plugin/words.hpp"

namespace ddprun::console {
namespace {

// All visible subcommands and long options of the command line.
void add_words(const CLI::App& cli, std::vector<std::string>& words) {
  for (const CLI::Option* option :
       cli.get_options([](const CLI::Option* found) { return !found->get_group().empty(); })) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  for (const CLI::App* subcommand : cli.get_subcommands([](const CLI::App*) { return true; })) {
    words.push_back(subcommand->get_name());
    add_words(*subcommand, words);
  }
}

// The innermost subcommand of the command line.
const CLI::App& chosen_command(const CLI::App& cli) {
  const auto below = cli.get_subcommands();
  return below.empty() ? cli : chosen_command(*below.front());
}

// CLI11's message in plain words.
std::string reason_of(const CLI::ParseError& error) {
  const std::string text = error.what(), unreadable = "Could not convert: ";
  if (text.starts_with(unreadable)) return text.substr(unreadable.size()) + ": expected a number";
  if (text.starts_with(": ")) return text.substr(2);  // CLI11 does not name a hidden option
  if (text.ends_with(" missing")) return text.substr(0, text.find(':')) + ": its value is missing";
  return std::regex_replace(text, std::regex(R"(\[(\S+) - (\S+)\])"), "$1 to $2");  // CLI11 2.4
}

// "ddprun data info": the command with its subcommand.
std::string command_of(const CLI::App& cli) {
  const auto below = cli.get_subcommands();
  return cli.get_name() + (below.empty() ? "" : " " + command_of(*below.front()));
}

void describe_help(CLI::App& cli) {
  if (CLI::Option* help = cli.get_help_ptr()) help->description("Print this help.");
  for (CLI::App* subcommand : cli.get_subcommands([](CLI::App*) { return true; })) describe_help(*subcommand);
}

}  // namespace

// plugin/registry.cpp has the order of the folders.
const char* const kAboutPlugins =
    "Plugins are searched in these folders, in this order:\n"
    "  1. --plugin-path DIR\n"
    "  2. DDPRUN_PLUGIN_PATH, which may name several folders, with colons between them\n"
    "  3. lib/ddprun/" DDPRUN_PLUGIN_FOLDER
    " of this ddprun\n"
    "  4. $XDG_DATA_HOME/ddprun/plugins/" DDPRUN_PLUGIN_FOLDER
    " (by default ~/.local/share/ddprun/plugins/" DDPRUN_PLUGIN_FOLDER
    ")\n"
    "  5. /usr/local/lib/ddprun/" DDPRUN_PLUGIN_FOLDER
    "\n"
    "ddprun plugins lists the plugins there. DDPRUN_NO_DEEPBIND=1 loads plugins without RTLD_DEEPBIND: a plugin that\n"
    "was built with a sanitizer needs it.\n";

std::shared_ptr<CLI::App> make_command(const std::string& about, const std::string& name) {
  return std::make_shared<CLI::App>(about, name);
}

std::shared_ptr<CLI::App> tool_command(const std::string& tool) {
  return make_command(std::string(about_tool(tool)), "ddprun " + tool);
}

CLI::Option* add_repeated(CLI::App& to, const std::string& name, std::vector<std::string>& values,
                          const std::string& type, const std::string& help) {
  return to.add_option(name, values, help)->type_name(type)->expected(1)->allow_extra_args(false)->take_all();
}

CLI::Option* add_key_values(CLI::App& to, const std::string& name, std::vector<std::string>& values,
                            const std::string& type, const std::string& help) {
  const auto without_blanks = [](const std::string& text) {
    return std::regex_replace(text, std::regex(R"(^\s*([^=]*?)\s*=\s*)"), "$1=");
  };
  return add_repeated(to, name, values, type, help)->transform(without_blanks);
}

std::map<std::string, std::string> key_values(const std::string& option, const std::vector<std::string>& texts) {
  std::map<std::string, std::string> values;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(ExitCode::usage, option + " " + text + ": expected KEY=VALUE");
    }
    values[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return values;
}

CLI::Option* add_plugin_path(CLI::App& to, std::vector<std::string>& folders) {
  to.footer([] { return std::string(kAboutPlugins); });
  return add_repeated(to, "--plugin-path", folders, "DIR", "Search this folder of plugins first. May be repeated.");
}

CLI::Option* add_overrides(CLI::App& to, std::vector<std::string>& overrides) {
  return add_key_values(to, "--set", overrides, "KEY=VALUE",
                        "Override a key of the config, for example comm.algorithm=ring. May be repeated.");
}

CLI::Option* add_config(CLI::App& to, std::string& path, const std::string& help) {
  return to.add_option("--config,file", path, help)->type_name("FILE");
}

void add_node_options(CLI::App& to, NodeOptions& options, const std::string& letter) {
  const auto counts = [](CLI::Option* option, int least) { option->check(CLI::Range(least, 1 << 20)); };
  const std::string group = "Several hosts";
  counts(add_torchrun_option(to, "--nproc-per-node", options.nproc, "N",
                             "Start N ranks on this host. The default is launch.nproc of the config, or 1.",
                             letter + "--nproc,"),
         1);
  const auto add = [&](const std::string& name, auto& value, const std::string& type, const std::string& help) {
    return add_torchrun_option(to, name, value, type, help)->group(group);
  };
  counts(add("--nnodes", options.nnodes, "N", "The number of hosts. Start the same command on each of them."), 1);
  counts(add("--node-rank", options.node_rank, "N", "The number of this host, from 0."), 0);
  add("--master-addr", options.master_addr, "HOST", "The name or the address of the host with number 0.");
  add("--master-port", options.master_port, "PORT", "A free port of that host. The default is 29500.")
      ->check(CLI::Range(1, 65535));
  counts(add("--max-restarts", options.max_restarts, "N",
             "Start the job again after a failure, at most N times. The default is launch.max_restarts, or 0."),
         0);
  to.add_flag("--standalone", options.standalone,
              "Start the ranks on this host, even if a launcher has started this command.")
      ->group(group);
}

CLI::Option* add_insecure(CLI::App& to, NodeOptions& options) {
  return to
      .add_flag("--insecure", options.insecure,
                "Allow ranks to meet without DDPRUN_SECRET, on a network that you trust.")
      ->group("Several hosts");
}

ExitCode show_help(const CLI::App& cli) {
  const std::string above = cli.get_parent() == nullptr ? "" : cli.get_parent()->get_name();
  std::fputs(cli.help(above).c_str(), stderr);
  return ExitCode::usage;
}

std::string unknown_argument(const CLI::App& cli, const std::string& argument, std::vector<std::string> more_words) {
  const std::string text = "unknown argument \"" + argument + "\"";
  const std::size_t equals = argument.find('='), dot = argument.find('.');
  const bool is_setting = !argument.starts_with('-') && dot < equals && equals != std::string::npos;
  if (is_setting && chosen_command(cli).get_option_no_throw("--set") != nullptr) {
    return text + "; to set a key, use --set " + argument;
  }
  add_words(cli, more_words);
  return text + did_you_mean(argument, more_words);
}

ExitCode refuse(const CLI::App& cli, const std::string& reason) {
  log::always("ddprun: " + reason + "; see " + command_of(cli) + " --help");
  return ExitCode::usage;
}

std::optional<ExitCode> parse(CLI::App& cli, int argc, char** argv) {
  describe_help(cli);
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return static_cast<ExitCode>(cli.exit(error));
    const std::vector<std::string> unknown = cli.remaining(true);
    return refuse(cli, unknown.empty() ? reason_of(error) : unknown_argument(cli, unknown[0]));
  }
  return std::nullopt;
}

}  // namespace ddprun::console
