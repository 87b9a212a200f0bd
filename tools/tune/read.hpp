// Reads what the children of `ddprun tune` have measured.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/tune/model.hpp"

namespace ddprun::tune {

// The median step of the slowest rank, without the first two and `traced` ones. Throws as record::read_run().
double step_of(const std::string& run_dir, const std::vector<int64_t>& traced);

// The allreduces of a traced run, by bucket: the median over its traced steps, without the first two. The last rank to
// come waits for nobody, so the fastest of a step counts. Throws Error(usage) as report::read_trace().
std::vector<Call> calls_of(const std::string& run_dir);

// The curves in a file of `ddprun bench --json` of one backend, by requested algorithm. Throws as
// predict::read_bench().
std::map<std::string, Curve> curves_of(const std::string& path);

// The result of `ddprun compare` of two variants.
struct Verified {
  double before = 0, after = 0;  // seconds of a step
  bool is_faster = false;
  std::string sentence;
};

// Reads the one comparison in this folder. Throws Error(failure).
Verified read_comparison(const std::string& folder);

}  // namespace ddprun::tune
