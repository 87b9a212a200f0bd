// The output of a suite.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ddprun/error.hpp"
#include "tools/conformance/options.hpp"
#include "tools/conformance/result.hpp"
#include "tools/conformance/results_file.hpp"

namespace ddprun::conformance {

// Prints and counts results.
class Printer {
 public:
  // Throws Error(usage) if a file of the options would be in a folder that does not exist, so that it costs no run.
  Printer(const CheckOptions& options, Tested plugin);

  void add(const Result& result);
  // Something that is not tested, because of the plugin or the machine.
  void skip(const std::string& what, std::size_t combinations);
  // Prints the table lines of a world, in the order in which its groups first appeared.
  void end_world(const std::string& world);
  // Prints notes, skips and the counts, and writes the files. The exit code of the suite: ok or gate. Throws
  // Error(failure) if a file cannot be written.
  ExitCode close();

 private:
  struct Line {
    std::string group;
    std::size_t passed = 0;
    std::size_t failed = 0;
  };
  Line& line_of(const std::string& group);

  bool verbose_;
  Tested plugin_;
  std::string junit_path_, json_path_;
  std::size_t passed_ = 0;
  std::size_t failed_ = 0;
  std::size_t skipped_ = 0;
  std::size_t not_run_ = 0;
  std::vector<Line> lines_;
  std::vector<std::string> notes_;
  std::vector<std::string> skips_;
  std::map<std::pair<std::string, std::string>, std::size_t> left_out_;  // cases not run, by world and reason
  std::vector<Result> results_;
  std::vector<Skipped> undeclared_;
};

}  // namespace ddprun::conformance
