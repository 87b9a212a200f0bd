// Runs variants with the real program, each in processes of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ddprun/error.hpp"
#include "console/progress_bar.hpp"
#include "tools/compare/process.hpp"
#include "tools/compare/request.hpp"
#include "tools/compare/variant.hpp"

namespace ddprun::compare {

// What became of one run.
struct RunEnd {
  ProcessEnd process;
  std::string dir;  // its run folder; "" where it did not get that far
  std::string log;  // all that it printed
};

// One thread, the main one (launch/supervisor.hpp tells why).
class Runner {
 public:
  // Makes the folder <output>/<kind>-<time>/ with runs/ and logs/ in it. Throws Error(failure).
  Runner(const Running& running, const std::string& kind, const Variant& first);

  const std::string& folder() const { return folder_; }

  // `ddprun validate` for each variant: plugins, algorithms, data and model are there. Throws Error with the exit code
  // and the last line of the first that fails.
  void validate(const std::vector<Variant>& variants);

  // Trains to the end, whatever that is. `label` names the run for the eye and for its log: "round 2 of 5: gloo ring".
  // `end_early` as in ProcessPlan, given the run folder, or "" before there is one. Throws Error(interrupted or
  // terminated) where this process was asked to end.
  using EndEarly = std::function<bool(const std::string& dir)>;
  RunEnd run(const Variant& variant, const std::string& label, const std::vector<std::string>& more_overrides,
             const EndEarly& end_early = {});

  // run(), and Error with the run's own exit code where that is not 0: variant, cause and log.
  std::string must_run(const Variant& variant, const std::string& label,
                       const std::vector<std::string>& more_overrides = {});

  // How many runs there will be in all, as far as is known; for the time left.
  void expect(int64_t runs) { expected_ = runs; }
  // A line about the run that has just ended.
  void tell(const std::string& line);

 private:
  ProcessPlan plan_of(const std::vector<std::string>& arguments, const std::string& log) const;
  std::string new_run_dir() const;
  void draw(const std::string& label);

  Running running_;
  std::string folder_;
  std::vector<std::string> seen_;  // run folders of earlier runs
  int64_t done_ = 0;
  int64_t expected_ = 0;
  double seconds_ = 0;  // of the runs so far
  std::chrono::steady_clock::time_point start_{};
  console::ProgressBar bar_;
};

// The last line of a log that is not empty: a failed run says there why.
std::string last_line_of(const std::string& path);

}  // namespace ddprun::compare
