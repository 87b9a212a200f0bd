// The children of `ddprun tune`: each is `ddprun` with arguments, on this host or on all hosts together.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/store.hpp"
#include "cli/config/experiment.hpp"
#include "ddprun/error.hpp"
#include "tools/lib/job.hpp"
#include "tools/tune/model.hpp"
#include "tools/tune/tune.hpp"

namespace ddprun::tune {

// For the main thread only, as tools::run_process().
class Session {
 public:
  // With several hosts, meets the others. `ranks`: of this host. `identity`: what must be equal on all hosts
  // (launch/rendezvous.hpp). Both references must outlive the session. Collective. Throws Error: usage for the node
  // options, rendezvous.
  Session(const Request& request, const config::Experiment& experiment, int64_t ranks, const std::string& identity,
          std::chrono::milliseconds timeout);

  int hosts() const { return job_ ? job_->count() : 1; }
  int64_t ranks() const { return all_ranks_; }  // of all hosts

  // Placeholders in a child's arguments. Each host replaces them by its own values: --config and --set of a short run,
  // and --option for comm.options.
  static constexpr const char* kExperiment = "<experiment>";
  static constexpr const char* kOptions = "<options>";

  // Within lead(): runs a child to its end on all hosts; its output goes to <folder>/logs/<name>.log. Throws Error with
  // the child's exit code and its last line, or interrupted or terminated.
  void run(const std::string& folder, const std::string& name, const std::vector<std::string>& arguments);

  // Runs `work` on host 0; the other hosts take part in its children, and end as it does (tools::Job).
  ExitCode lead(const std::function<void()>& work);

 private:
  tools::ProcessPlan plan_of(const std::vector<std::string>& arguments, const std::string& log) const;

  const Request& request_;
  const config::Experiment& experiment_;
  std::unique_ptr<tools::Job> job_;  // null: one host
  int64_t all_ranks_;
};

struct Measurement {
  std::string name;    // of the run: model and data
  std::string folder;  // new: tune-<time>, with runs/ and logs/
  int64_t steps = 0;   // of each run, but the first
  Basis basis;
};

// On host 0, in the main thread: runs the children one after another, with their results in a new folder. For each
// recorded backend and compression, `per_byte` of the basis makes the expected step equal to the recorded one, or is 0
// if the expected step is already longer. Throws as Session::run(). Before anything starts, throws Error(plugin) for an
// unknown backend, and Error(usage) for an unknown algorithm.
Measurement measure(const Request& request, const config::Experiment& experiment, Session& session);

// A line about what happens now, unless --quiet is given.
void announce(const Request& request, const std::string& what);

}  // namespace ddprun::tune
