// What the settings of two variants say about a comparison: whether it is fair, and why their numbers differ.
#pragma once

#include <string>
#include <vector>

#include "cli/config/experiment.hpp"
#include "tools/compare/variant.hpp"

namespace ddprun::compare {

// The settings that make variants do different work: another global batch, other data (all of data.* except how it is
// loaded), another seed or another length. One line each, such as "data.name: \"mnist\" in a, \"cifar10\" in b". Empty:
// the comparison is fair.
std::vector<std::string> unfair_differences(const std::vector<Variant>& variants);

// Throws Error(usage) with those lines and advice.
void require_fair(const std::vector<Variant>& variants);

// The keys of report::differing_settings().
std::vector<std::string> keys_that_differ(const std::vector<Variant>& variants);

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
