// Whether a comparison of the variants is fair.
#pragma once

#include <string>
#include <vector>

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

}  // namespace ddprun::compare
