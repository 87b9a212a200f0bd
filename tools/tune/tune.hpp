// The parts of `ddprun tune`: the request, the children, and the whole. Each child is `ddprun` with arguments, on this
// host or on all hosts together.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/config/experiment.hpp"
#include "cli/console/node_options.hpp"
#include "ddprun/error.hpp"
#include "tools/compare/compare.hpp"
#include "tools/lib/job.hpp"
#include "tools/tune/model.hpp"

namespace ddprun::tune {

// The time of a step in seconds: the median over the steps, where the slowest rank of each step counts. The first two
// steps do not count, nor do those with a number in `traced`; NaN if none is left. Throws as tools::read_run().
double step_of(const std::string& run_dir, const std::vector<int64_t>& traced);

// The allreduces of a traced run, one for each bucket, in their order: the median over its traced steps, without the
// first two steps. Of each step, the fastest rank counts: the last rank that starts an allreduce waits for nobody.
// Throws Error(usage) as report::read_trace().
std::vector<Call> calls_of(const std::string& run_dir);

// The curves in a file of `ddprun bench --json` of one backend, by requested algorithm. Throws as
// predict::read_bench().
std::map<std::string, Curve> curves_of(const std::string& path);

// The result of `ddprun compare` of two variants.
struct Verified {
  double before = 0, after = 0;         // seconds of a step
  std::string verdict;                  // compare::text(Verdict)
  std::string sentence;                 // the verdict with its figures
  std::vector<std::string> warnings{};  // compare::warnings()

  bool is_faster() const { return verdict == "faster"; }
};

// Reads the one comparison in this folder. Throws Error(failure).
Verified read_comparison(const std::string& folder);

struct Result {
  std::string name;    // of the run: model and data
  std::string folder;  // with all that was measured: tune-<time>, with runs/ and logs/
  int64_t steps = 0;   // of each run, but the first
  int64_t hosts = 1, ranks = 1;
  double other_cpu = 0;  // share of this machine's CPU time that other programs used meanwhile; NaN: unknown
  Basis basis;
  Settings own, chosen;
  std::optional<Verified> verified;  // none: there was nothing to compare

  std::vector<Change> changes() const { return tune::changes(own, chosen); }
  // Whether the changed lines are worth writing.
  bool is_better() const { return verified && verified->is_faster(); }
};

// The links, the gradients, and the expected step with the config as it is and with the chosen lines.
std::string about_choice(const Result& result);
// What the comparison says, and the lines.
std::string about_verdict(const Result& result);

// docs/tuning-communication.md describes it. Times in seconds, sizes in bytes.
std::string to_json(const Result& result, const std::vector<std::string>& command);

struct Request {
  std::string config;
  std::vector<std::string> overrides;    // --set
  std::vector<std::string> backends;     // candidates; empty: the config's own
  std::vector<std::string> algorithms;   // candidates; empty: all that the backends have
  std::vector<std::string> compression;  // candidates, besides the config's own
  int64_t steps = 0;                     // of each run; 0: tune chooses
  int64_t rounds = 5;                    // of the comparison
  std::string json;                      // FILE
  console::NodeOptions nodes;
  compare::Running running;
};

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

// On host 0, in the main thread: runs the children one after another, with their results in a new folder. For each
// recorded backend and compression, `per_byte` of the basis makes the expected step equal to the recorded one, or is 0
// if the expected step is already longer. What is chosen and verified is left open. Throws as Session::run(). Before
// anything starts, throws Error(plugin) for an unknown backend, and Error(usage) for an unknown algorithm.
Result measure(const Request& request, const config::Experiment& experiment, Session& session);

// A line about what happens now, unless --quiet is given.
void announce(const Request& request, const std::string& what);

// Measures, chooses, compares and prints; writes the files of the request. Returns ok, also if the config is best as it
// is. Throws Error: usage for the request or for an experiment whose gradients cannot be tuned, or the exit code of a
// failed child.
ExitCode run(const Request& request, const std::vector<std::string>& command);

}  // namespace ddprun::tune
