// A launcher whose ranks follow a script; fake_job.cpp describes the script.
#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "support/process.hpp"
#include "support/text.hpp"

namespace ddprun::launch::testing {

using namespace ddprun::testing;
using std::chrono::milliseconds;
namespace fs = std::filesystem;

// The goals are 0.5 s and less. Tests run on busy machines, so they print the measured times and fail only far above;
// still far below a FakeJob's grace of 60 s.
inline constexpr milliseconds kSlack{18000};

// fake_job as a launcher whose job folders are in a folder of the test.
class FakeJob {
 public:
  FakeJob(int nproc, const std::vector<std::string>& steps, bool joined = false, const std::string& log_dir = "-",
          const std::string& grace_ms = "60000", const std::vector<std::string>& variables = {}) {
    std::vector<std::string> command = {FAKE_JOB, std::to_string(nproc), log_dir, grace_ms};
    command.insert(command.end(), steps.begin(), steps.end());
    std::vector<std::string> environment = {"XDG_RUNTIME_DIR=" + base_.path().string()};
    environment.insert(environment.end(), variables.begin(), variables.end());
    process_ = std::make_unique<Process>(command, environment, joined);
  }

  Process& operator*() { return *process_; }
  Process* operator->() { return process_.get(); }
  const fs::path& base() const { return base_.path(); }
  bool folder_gone() const { return fs::is_empty(base_.path()); }

 private:
  TempDir base_;
  std::unique_ptr<Process> process_;
};

// The last line, even if it is empty: the launcher ends with the first cause and prints nothing after it.
inline std::string final_line(const std::string& text) {
  const auto lines = lines_of(text);
  return lines.empty() ? "" : lines.back();
}

// The number in a file that a rank writes at that point.
inline pid_t pid_in(const fs::path& file) {
  pid_t pid = 0;
  REQUIRE(eventually([&] { return static_cast<bool>(std::ifstream(file) >> pid); }));
  return pid;
}

}  // namespace ddprun::launch::testing
