// Runs the program on a config of the test, watches it, and inspects its files.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/paths.hpp"
#include "support/process.hpp"
#include "support/read_file.hpp"
#include "support/text.hpp"

namespace ddprun::e2e {

using testing::ProcessResult;

using Argv = std::vector<std::string>;
inline Argv operator+(Argv a, const Argv& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A training on two ranks that needs no files.
inline const std::string kLinearOnTwoRanks = R"(
[launch]
nproc = 2
[comm]
backend = "gloo"
algorithm = "ring"
[strategy]
kind = "ddp"
[model]
name = "linear"
[data]
name = "linear"
batch_size = 64
)";

// A training on two ranks in which rank 1 never gets its samples of step 7.
inline const std::string kStalling = R"(
[launch]
nproc = 2
threads = 1
[strategy]
kind = "ddp"
[model]
name = "linear"
[data]
name = ")" + testing::build_dir() + R"(/tests/fakes/gpu/libddprun_dataset_stalling.so"
batch_size = 24
shuffle = false
workers = 0
options = { samples = 240, at = 145 }
[train]
evaluate = false
)";

// The folder of one test: the config, the runs, and a private folder for temporary files and job folders, so that
// leftovers there come from this test.
class Workplace {
 public:
  Workplace();

  // Writes <name>.toml; returns its path.
  std::string config(const std::string& text, const std::string& name = "exp") const;
  // argv of `ddprun --config <config> --set experiment.output=<runs> [--set ...]`
  std::vector<std::string> training(const std::string& config, const std::vector<std::string>& overrides = {}) const;
  // Environment for every child: the private folders, and no settings of this machine's launcher. The user's own
  // plugins are those in folder()/data/ddprun/plugins/v1.
  std::vector<std::string> environment() const;

  ProcessResult run(const std::vector<std::string>& argv) const;
  // Runs `ddprun ARGUMENTS` to its end.
  ProcessResult ddprun(const std::vector<std::string>& arguments) const;

  std::filesystem::path folder() const { return folder_.path(); }
  std::filesystem::path runs() const { return folder() / "runs"; }
  // The one folder in runs() that is new since the last call. Throws unless there is exactly one.
  std::filesystem::path new_run();
  // The files in the folder for temporary files and job folders: none while no program runs.
  std::vector<std::string> leftovers() const;

 private:
  testing::TempDir folder_;
  std::set<std::filesystem::path> seen_;
};

// A running job: its launcher, whose ranks can be found and killed.
class Job {
 public:
  Job(const Workplace& place, const std::vector<std::string>& argv);

  testing::Process& launcher() { return launcher_; }
  // Waits until rank 0 has reported a step of the training. Throws after half a minute.
  void wait_for_steps();
  // The ranks' pids, found through this variable of their environment. Throws if there are not `world` of them after a
  // while.
  std::map<int, pid_t> ranks(int world, const std::string& variable = "DDPRUN_RANK") const;
  // All descendants of the launcher.
  std::vector<pid_t> descendants() const;

 private:
  testing::Process launcher_;
};

// Files below `within` or in /dev/shm that the process has mapped.
std::set<std::string> mapped_files(pid_t pid, const std::filesystem::path& within);

// A port of this host that is free now.
int free_port();

// The path of the program under test.
std::string program();

}  // namespace ddprun::e2e
