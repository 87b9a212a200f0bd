// Checks the GPUs of a suite whose buffers are in CUDA memory.
#pragma once

#include <string>

#include "tools/conformance/suite.hpp"

namespace ddprun::conformance {

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
