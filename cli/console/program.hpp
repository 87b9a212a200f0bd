// Common code of every ddprun program: finds itself and other programs, and turns an exception into one line and an
// exit code.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ddprun/error.hpp"

namespace ddprun::console {

// The path of this program.
std::string this_program();

// The folders where programs are searched: this program's own, then those of PATH.
std::vector<std::string> program_folders();
// The path of the first executable with this name in these folders; "" if there is none.
std::string find_program(const std::string& name);

// What each of ddprun's own tools does, for its help and for that of `ddprun`, which then need not start the tools.
inline constexpr std::pair<std::string_view, std::string_view> kOwnTools[] = {
    {"bench", "Measure collectives, and compare backends and algorithms."},
    {"compare", "Compare training runs: how fast, how sure, and whether they learn the same."},
    {"completion", "Print a completion for bash, zsh or fish."},
    {"conformance", "Test a plugin against its contract."},
    {"data", "Download data sets, and show their content."},
    {"doctor", "Examine this host: plugins, cores, memory, GPUs, network and limits."},
    {"new", "Write the project of a new plugin that builds, passes its conformance suite and trains."},
    {"predict", "Predict the speed on more hosts, from a run and measured links."},
    {"report", "Write a page with charts of runs or benchmarks, or the records of a run as CSV."},
    {"tune", "Choose algorithm, bucket sizes and compression for an experiment, and verify them."},
};

// "" for a tool of somebody else.
constexpr std::string_view about_tool(std::string_view name) {
  for (const auto& [tool, about] : kOwnTools) {
    if (tool == name) return about;
  }
  return "";
}

// The body of main(): follows the launcher that started this process, if there is one, runs `body`, and flushes stdout.
// Reports an exception of `body`, and output that stdout did not take.
int run_program(const std::function<ExitCode()>& body);

}  // namespace ddprun::console
