// Whether variants may be compared at all.
#pragma once

#include <string>
#include <vector>

#include "tools/compare/variant.hpp"

namespace ddprun::compare {

// What makes variants do different work: another global batch, other data (all of data.* but how it is loaded), another
// seed or another length. One line each, as "data.name: \"mnist\" in a, \"cifar10\" in b". Empty: the comparison is
// fair.
std::vector<std::string> unfair_differences(const std::vector<Variant>& variants);

// Throws Error(usage) with those lines and what to do about them.
void require_fair(const std::vector<Variant>& variants);

// All keys whose values differ between variants, but for the experiment's name and output.
std::vector<std::string> keys_that_differ(const std::vector<Variant>& variants);

}  // namespace ddprun::compare
