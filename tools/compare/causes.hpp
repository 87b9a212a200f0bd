// Why the numbers of two variants differ, as far as their settings say.
#pragma once

#include <string>
#include <vector>

#include "cli/config/experiment.hpp"

namespace ddprun::compare {

// A difference of the settings that changes the numbers of training.
struct Cause {
  std::string text;      // "global batch (32 and 64)"
  bool at_once = false;  // it changes the loss of the first step; otherwise its gradients, or its weights
  bool rounds = false;   // it changes only how sums are rounded
};

// `batch_norm`: the model has BatchNorm.
std::vector<Cause> causes_of(const config::Experiment& a, const config::Experiment& b, bool batch_norm);

// Whether the model of a run has BatchNorm, by the names in its newest checkpoint.
bool has_batch_norm(const std::string& run_dir);

// Both train in float32, gradients included.
bool in_float32(const config::Experiment& a, const config::Experiment& b);

}  // namespace ddprun::compare
