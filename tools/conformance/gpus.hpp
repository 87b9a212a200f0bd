// The GPUs of a suite whose buffers are in CUDA memory.
#pragma once

#include <string>

#include "tools/conformance/suite.hpp"

namespace ddprun::conformance {

struct Gpus {
  int count = 0;
  std::string missing;  // why the plugin cannot be tested on them, in one line; empty where it can
};

// Asks in a process of its own, because a process that has asked cannot fork ranks that use a GPU. Tries a group of one
// on the first rank's GPU. Forks: for one thread only. Throws Error where the plugin fails in another way than by
// missing something.
Gpus find_gpus(const Settings& settings);

// Why there can be no world of this size; empty where it can.
std::string why_no_world(const Settings& settings, const Gpus& gpus, int size);

}  // namespace ddprun::conformance
