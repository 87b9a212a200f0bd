// The table of keys, in two halves. docs/config.md is generated from it, so each sentence is written for the user.
#pragma once

#include <vector>

#include "cli/config/keys.hpp"

// Makes a key's name and its member from one spelling, so that they always agree.
#define DDPRUN_KEY(path) Key(#path, [](Experiment& e) -> Member { return &e.path; })

namespace ddprun::config {

// How a run is started and distributed over the ranks; what is trained, on what data, and how.
std::vector<Key> describe_running();
std::vector<Key> describe_learning();

}  // namespace ddprun::config
