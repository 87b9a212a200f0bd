// The table of keys itself, in two halves: docs/config.md is made from it, so each sentence is written for the user.
#pragma once

#include <vector>

#include "config/keys.hpp"

// The key's name and its member cannot drift apart: both come from one spelling.
#define DDPRUN_KEY(path) Key(#path, [](Experiment& e) -> Member { return &e.path; })

namespace ddprun::config {

// How a run is started and spread over the ranks; what is learnt from what, and how.
std::vector<Key> describe_running();
std::vector<Key> describe_learning();

}  // namespace ddprun::config
