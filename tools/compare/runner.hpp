// Runs variants with ddprun, each in its own processes.
#pragma once

#include <string>
#include <vector>

#include "cli/console/progress_bar.hpp"
#include "ddprun/error.hpp"
#include "ddprun/records.hpp"
#include "tools/compare/compare.hpp"
#include "tools/compare/comparison.hpp"
#include "tools/compare/variant.hpp"
#include "tools/lib/job.hpp"

namespace ddprun::compare {

// Creates the folder <output>/<kind>-<time>/, in --output or, without it, in experiment.output. Throws Error(failure).
std::string new_folder(const Running& running, const config::Experiment& experiment, const std::string& kind);

// The result of one run.
struct RunEnd : tools::ChildEnd {
  std::string dir{};  // its run folder; "" if it did not create one
};

// For the main thread only (launch/supervisor.hpp says why).
class Runner {
 public:
  // Creates the folder <output>/compare-<time>/ with runs/ and logs/ in it. The processes of `job` take part in the
  // runs of ddp; null: this process makes all runs. Throws Error(failure).
  Runner(const Running& running, const Variant& first, tools::Job* job = nullptr);

  const std::string& folder() const { return folder_; }

  // Runs `ddprun validate` for each variant: checks plugins, algorithms, data and model. Throws Error with the exit
  // code and the last line of the first one that fails.
  void validate(const std::vector<Variant>& variants);

  // Trains to the end. `label` names the run in messages and in its log: "round 2 of 5: gloo ring". Throws Error with
  // the run's exit code if that is not 0 (variant, cause and log); interrupted or terminated if this process was asked
  // to end.
  RunEnd run(const Variant& variant, const std::string& label, const std::vector<std::string>& more_overrides = {});

  // The total number of runs as far as known, for the remaining time.
  void expect(int64_t runs) { expected_ = runs; }
  // A line about the run that has just ended.
  void print(const std::string& line);

 private:
  std::string so_far() const { return "; the runs so far are in " + folder_; }
  std::string new_run_dir() const;
  void draw(const std::string& label);

  Running running_;
  tools::Job* const job_;
  std::string folder_;
  std::vector<std::string> seen_;  // run folders of earlier runs
  int64_t done_ = 0;
  int64_t expected_ = 0;
  double seconds_ = 0;  // total of the runs so far
  std::chrono::steady_clock::time_point start_{};
  console::ProgressBar bar_;
};

// The plan of `ddprun ARGUMENTS`.
tools::ProcessPlan plan_of(const Running& running, const std::vector<std::string>& arguments, const std::string& log);

// The other processes of a comparison: make their parts of all runs.
ExitCode follow(tools::Job& job, const Running& running, const std::vector<Variant>& variants);

// Rounds of one run per variant, in turn_order(): Request::repeats rounds; with a precision, more rounds up to
// max_repeats, until every interval against the first variant is narrow enough. `comparison` has its members and gets
// their runs. Throws Error with a failed run's exit code.
void measure(Runner& runner, const Request& request, Comparison& comparison);

// Two short runs of each variant (except a twin), which record parity_steps steps of tensors.
void measure_parity(Runner& runner, const Request& request, Comparison& comparison);

}  // namespace ddprun::compare
