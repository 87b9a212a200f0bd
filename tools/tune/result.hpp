// What the children of `ddprun tune` have measured, and what it has found, as text and as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

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
  std::string folder;  // with all that was measured
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

}  // namespace ddprun::tune
