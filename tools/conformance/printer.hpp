// The result of a case, and the output of a suite.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ddprun/error.hpp"

namespace ddprun::conformance {

struct Result {
  enum class State { passed, failed, skipped };
  std::string world;  // "world 3 processes", "world 2x2 hosts", "data set"
  std::string group;
  std::string name;
  State state = State::passed;
  std::string text;  // failed: the errors, one per line; skipped: why
  std::vector<std::string> notes;
};

// Prints and counts results.
class Printer {
 public:
  explicit Printer(bool verbose) : verbose_(verbose) {}

  void add(const Result& result);
  void skip(const std::string& what, std::size_t combinations);
  // Prints the table lines of a world, in the order in which its groups first appeared.
  void end_world(const std::string& world);
  // Prints notes, skips and the counts. The exit code of the suite: ok or gate.
  ExitCode close();

 private:
  struct Line {
    std::string group;
    std::size_t passed = 0;
    std::size_t failed = 0;
  };
  Line& line_of(const std::string& group);

  bool verbose_;
  std::size_t passed_ = 0;
  std::size_t failed_ = 0;
  std::size_t skipped_ = 0;
  std::vector<Line> lines_;
  std::vector<std::string> notes_;
  std::vector<std::string> skips_;
};

}  // namespace ddprun::conformance
