// The command line of a program, with CLI11: common options, and errors as one line. CLI11 is slow to compile: only a
// program's main.cpp includes this file, and command_line.cpp has what all of them need.
#pragma once

#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/console/node_options.hpp"
#include "ddprun/error.hpp"

namespace ddprun::console {

// A command line without options.
std::shared_ptr<CLI::App> make_command(const std::string& about, const std::string& name);
// That of a tool: "ddprun bench", with its line of about_tool().
std::shared_ptr<CLI::App> tool_command(const std::string& tool);

// An option that may be repeated, with one value each time: an argument after the value does not belong to it.
CLI::Option* add_repeated(CLI::App& to, const std::string& name, std::vector<std::string>& values,
                          const std::string& type, const std::string& help);
// As add_repeated(), of arguments that are KEY=VALUE, with or without blanks around the '='.
CLI::Option* add_key_values(CLI::App& to, const std::string& name, std::vector<std::string>& values,
                            const std::string& type, const std::string& help);
// Arguments of the form KEY=VALUE. `option` is the name for errors: "--option". Throws Error(usage).
std::map<std::string, std::string> key_values(const std::string& option, const std::vector<std::string>& texts);

// For the help of every program that loads plugins: where they are searched.
extern const char* const kAboutPlugins;
// --plugin-path, with kAboutPlugins in the help, above the footer.
CLI::Option* add_plugin_path(CLI::App& to, std::vector<std::string>& folders);
CLI::Option* add_overrides(CLI::App& to, std::vector<std::string>& overrides);  // --set
// --config FILE, or FILE alone.
CLI::Option* add_config(CLI::App& to, std::string& path, const std::string& help = "The experiment.");

// An option of torchrun: "--node-rank", and hidden "--node_rank". `more_names`: "-n," for a short name too.
template <typename Value>
CLI::Option* add_torchrun_option(CLI::App& to, const std::string& name, Value& value, const std::string& type,
                                 const std::string& help, const std::string& more_names = "") {
  std::string underscores = name;
  std::replace(underscores.begin() + 2, underscores.end(), '-', '_');
  if (underscores != name) to.add_option(underscores, value)->group("");
  return to.add_option(more_names + name, value, help)->type_name(type);
}

// The options of NodeOptions. `letter`: "-n," if -n is short for --nproc-per-node.
void add_node_options(CLI::App& to, NodeOptions& options, const std::string& letter = "");
// Of a command without a config, which would have launch.insecure.
CLI::Option* add_insecure(CLI::App& to, NodeOptions& options);

// For an empty command line.
ExitCode show_help(const CLI::App& cli);
// `more_words`: further words that could have been meant.
std::string unknown_argument(const CLI::App& cli, const std::string& argument,
                             std::vector<std::string> more_words = {});
// Reports a wrong command line as one line.
ExitCode refuse(const CLI::App& cli, const std::string& reason);
// Parses the command line. Returns an exit code if the program should end: after --help, or after reporting a wrong
// command line.
std::optional<ExitCode> parse(CLI::App& cli, int argc, char** argv);

}  // namespace ddprun::console
