// compare.json; docs/comparing.md describes it.
#pragma once

#include <string>

#include "tools/compare/comparison.hpp"

namespace ddprun::compare {

std::string to_json(const Comparison& comparison);

}  // namespace ddprun::compare
