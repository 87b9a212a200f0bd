// Reads what the children of `ddprun tune` have measured.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/tune/model.hpp"

namespace ddprun::tune {

// The time of a step in seconds: the median over the steps, where the slowest rank of each step counts. The first two
// steps do not count, nor do those with a number in `traced`; NaN if none is left. Throws as record::read_run().
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

}  // namespace ddprun::tune
