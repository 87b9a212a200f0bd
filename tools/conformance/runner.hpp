// Runs cases in worlds of ranks and combines the ranks' results into one verdict per case.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "testing/leftovers.hpp"
#include "tools/conformance/printer.hpp"
#include "tools/conformance/suite.hpp"

namespace ddprun::conformance {

std::string world_name(const Settings& settings, int size, testing::As as);

// Runs the cases in one world, and starts a new world after a case that broke it; `sink` gets each result immediately.
// Returns "", or why the suite should run nothing more: a required case failed, or any case with --fail-fast.
// It forks, so the caller must have only one thread.
std::string run_cases(const Settings& settings, int size, testing::As as, const std::vector<Case>& cases,
                      Leftovers& leftovers, const std::function<void(const Result&)>& sink);
// Passes the cases to the sink as not run.
void leave_out(const Settings& settings, int size, testing::As as, const std::vector<Case>& cases, std::size_t first,
               std::size_t last, const std::string& why, const std::function<void(const Result&)>& sink);

struct Gpus {
  int count = 0;
  std::string missing;  // one line: why the plugin cannot be tested on them; or empty
};

// Runs in a separate process, because a process that has used CUDA cannot fork ranks that use a GPU. Tries a world of
// one rank on the first rank's GPU. It forks: call it while there is one thread. Throws Error if the plugin fails for
// another reason than a missing device or library.
Gpus find_gpus(const Settings& settings);

// Why a world of this size is not possible; empty if it is.
std::string why_no_world(const Settings& settings, const Gpus& gpus, int size);

}  // namespace ddprun::conformance
