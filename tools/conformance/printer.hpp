// The options and the results of a suite: on the command line, printed, and as a file for other programs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/console/command_line.hpp"
#include "ddprun/error.hpp"

namespace ddprun::conformance {

struct CheckOptions {
  std::vector<std::string> filters;   // only names with one of these texts
  std::vector<std::string> excludes;  // no name with one of these texts
  bool list = false;                  // print the names, run none
  bool verbose = false;
  bool no_fork = false;  // run in this process, and never end it for being slow: for a debugger
  std::string json;      // file for the results as JSON; "": none

  bool chooses(const std::string& name) const {
    const auto in_name = [&](const std::string& text) { return name.find(text) != std::string::npos; };
    return (filters.empty() || std::ranges::any_of(filters, in_name)) && std::ranges::none_of(excludes, in_name);
  }
};

inline constexpr const char* kNoneChosen =
    "--filter, --exclude: no check is left; --list without them prints all names";

inline void add_check_options(CLI::App& to, CheckOptions& options) {
  console::add_repeated(to, "--filter", options.filters, "TEXT",
                        "Run only checks with this text in their name. May be repeated.");
  console::add_repeated(to, "--exclude", options.excludes, "TEXT",
                        "Run no check with this text in its name. May be repeated.");
  to.add_flag("--no-fork", options.no_fork,
              "Run in this process, with ranks as threads, and end nothing for being slow, as a debugger needs it.");
  to.add_option("--json", options.json, "Write the results to this file as JSON.")->type_name("FILE");
  to.add_flag("--list", options.list, "Print the names of the checks, and run none.");
  to.add_flag("--verbose", options.verbose,
              "Print every check, not only those that fail, and all that a communication plugin logs.");
}

struct Result {
  enum class State { passed, failed, not_run };
  std::string world;  // "world 3 processes", "world 2x2 hosts", "data set"
  std::string group;
  std::string name;
  State state = State::passed;
  std::string text;  // failed: the errors, one per line; not run: why
};

// Combinations that are not tested, because of the plugin or the machine.
struct Skipped {
  std::string what;
  std::size_t combinations = 0;
};

// Of the plugin under test.
struct Tested {
  std::string name;
  std::string version;
  std::string path;              // "": part of ddprun
  std::optional<uint64_t> seed;  // of drawn sizes
};

// {"plugin", "version", "path", "seed", "passed", "failed", "skipped", "not_run", "cases": [{"world", "group", "name",
// "state", "text"}], "undeclared": [{"what", "combinations"}]}
std::string json_of(const Tested& plugin, const std::vector<Result>& results, const std::vector<Skipped>& undeclared);

// Prints and counts results.
class Printer {
 public:
  // Throws Error(usage) if the file of the results would be in a folder that does not exist, so that it costs no run.
  Printer(CheckOptions options, Tested plugin);

  void add(const Result& result);
  // Something that is not tested, because of the plugin or the machine.
  void skip(const std::string& what, std::size_t combinations) { undeclared_.push_back({what, combinations}); }
  // Prints the table lines of a world, in the order in which its groups first appeared.
  void end_world(const std::string& world);
  // Prints skips and the counts, and writes the file. The exit code of the suite: ok or gate. Throws
  // Error(failure) if the file cannot be written.
  ExitCode close();

 private:
  CheckOptions options_;
  Tested plugin_;
  std::vector<Result> results_;
  std::vector<Skipped> undeclared_;
};

}  // namespace ddprun::conformance
