// Runs variants with ddprun, each in its own processes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/console/progress_bar.hpp"
#include "ddprun/error.hpp"
#include "ddprun/records.hpp"
#include "tools/compare/process.hpp"
#include "tools/compare/request.hpp"
#include "tools/compare/variant.hpp"

namespace ddprun::compare {

class Agents;

// Creates the folder <output>/<kind>-<time>/, in --output or, without it, in experiment.output. Throws Error(failure).
std::string new_folder(const Running& running, const config::Experiment& experiment, const std::string& kind);

// The result of one run.
struct RunEnd {
  ProcessEnd process;
  std::string dir;                     // its run folder; "" if it did not create one
  std::string log;                     // file with its output
  std::string cause;                   // of its failure, if another process of the comparison reported it
  double other_cpu = record::kAbsent;  // other_share() during the run
};

// For the main thread only (launch/supervisor.hpp says why).
class Runner {
 public:
  // Creates the folder <output>/<kind>-<time>/ with runs/ and logs/ in it. `agents` take part in the runs of ddp; null:
  // this process makes all runs. Throws Error(failure).
  Runner(const Running& running, const std::string& kind, const Variant& first, Agents* agents = nullptr);

  const std::string& folder() const { return folder_; }

  // Runs `ddprun validate` for each variant: checks plugins, algorithms, data and model. Throws Error with the exit
  // code and the last line of the first one that fails.
  void validate(const std::vector<Variant>& variants);

  // Trains to the end, with any result. `label` names the run in messages and in its log: "round 2 of 5: gloo ring".
  // `end_early` is as in ProcessPlan and gets the run folder, or "" before there is one. Throws Error(interrupted or
  // terminated) if this process was asked to end.
  using EndEarly = std::function<bool(const std::string& dir)>;
  RunEnd run(const Variant& variant, const std::string& label, const std::vector<std::string>& more_overrides,
             const EndEarly& end_early = {});

  // As run(), but throws Error with the run's exit code if that is not 0: variant, cause and log.
  RunEnd must_run(const Variant& variant, const std::string& label,
                  const std::vector<std::string>& more_overrides = {});

  // The total number of runs as far as known, for the remaining time.
  void expect(int64_t runs) { expected_ = runs; }
  // A line about the run that has just ended.
  void print(const std::string& line);

 private:
  std::string new_run_dir() const;
  void draw(const std::string& label);

  Running running_;
  Agents* const agents_;
  std::string folder_;
  std::vector<std::string> seen_;  // run folders of earlier runs
  int64_t done_ = 0;
  int64_t expected_ = 0;
  double seconds_ = 0;  // total of the runs so far
  std::chrono::steady_clock::time_point start_{};
  console::ProgressBar bar_;
};

// The plan of `ddprun ARGUMENTS`.
ProcessPlan plan_of(const Running& running, const std::vector<std::string>& arguments, const std::string& log);

// Of a child that did not end well: the exit code to end with, and why in words, which may be the last line of its log.
ExitCode code_of(const ProcessEnd& end);
std::string cause_of(const ProcessEnd& end, const std::string& log);

// The last non-empty line of a log: a failed run reports its cause there.
std::string last_line_of(const std::string& path);

}  // namespace ddprun::compare
