// The command line of a program, with CLI11: common options, and errors as one line. Only a program's main.cpp includes
// this file, so that CLI11, which is slow to compile, is compiled once.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "ddprun/error.hpp"
#include "ddprun/plugin/words.hpp"

namespace ddprun::console {

// An option that may be repeated, with one value each time: an argument after the value does not belong to it.
inline CLI::Option* add_repeated(CLI::App& to, const std::string& name, std::vector<std::string>& values,
                                 const std::string& type, const std::string& help) {
  return to.add_option(name, values, help)->type_name(type)->expected(1)->allow_extra_args(false)->take_all();
}

inline CLI::Option* add_plugin_path(CLI::App& to, std::vector<std::string>& folders) {
  return add_repeated(to, "--plugin-path", folders, "DIR", "A folder of plugins, searched first; any number");
}

inline CLI::Option* add_overrides(CLI::App& to, std::vector<std::string>& overrides) {
  return add_repeated(to, "--set", overrides, "KEY=VALUE", "Override a key: --set comm.algorithm=ring; any number");
}

// For an empty command line.
inline ExitCode show_help(const CLI::App& cli) {
  const std::string above = cli.get_parent() == nullptr ? "" : cli.get_parent()->get_name();
  std::fputs(cli.help(above).c_str(), stderr);
  return ExitCode::usage;
}

// All visible subcommands and long options of the command line.
inline void add_words(const CLI::App& cli, std::vector<std::string>& words) {
  for (const CLI::Option* option :
       cli.get_options([](const CLI::Option* found) { return !found->get_group().empty(); })) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  for (const CLI::App* subcommand : cli.get_subcommands([](const CLI::App*) { return true; })) {
    words.push_back(subcommand->get_name());
    add_words(*subcommand, words);
  }
}

// `more_words`: further words that could have been meant.
inline std::string unknown_argument(const CLI::App& cli, const std::string& argument,
                                    std::vector<std::string> more_words = {}) {
  const std::string text = "unknown argument \"" + argument + "\"";
  const bool takes_config = cli.get_option_no_throw("--config") != nullptr;
  if (takes_config && std::filesystem::exists(argument)) return text + "; to run a file, use --config " + argument;
  add_words(cli, more_words);
  return text + did_you_mean(argument, more_words);
}

// CLI11's message in plain words.
inline std::string reason_of(const CLI::ParseError& error) {
  const std::string text = error.what();
  const std::string unreadable = "Could not convert: ";
  if (text.starts_with(unreadable)) return text.substr(unreadable.size()) + ": expected a number";
  if (text.ends_with(" missing")) return text.substr(0, text.find(':')) + ": its value is missing";
  return text;
}

// "ddprun data info": the command with its subcommand.
inline std::string command_of(const CLI::App& cli) {
  const auto below = cli.get_subcommands();
  return cli.get_name() + (below.empty() ? "" : " " + command_of(*below.front()));
}

// Reports a wrong command line as one line.
inline ExitCode refuse(const CLI::App& cli, const std::string& reason) {
  log::always("ddprun: " + reason + "; see " + command_of(cli) + " --help");
  return ExitCode::usage;
}

// Parses the command line. Returns an exit code if the program should end: after --help, or after reporting a wrong
// command line.
inline std::optional<ExitCode> parse(CLI::App& cli, int argc, char** argv) {
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
