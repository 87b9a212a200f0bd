// The order in which the variants run.
#pragma once

#include <cstddef>
#include <vector>

namespace ddprun::compare {

// The order of `variants` variants in a round (from 0). Two variants: AB BA BA AB, so that a steady drift of the
// machine affects both alike. More: a row of a Williams (1949) square, in which each variant has each place and follows
// each other one equally often; the next round uses the same row in reverse. So 2 * variants rounds are balanced, and
// any two rounds cancel a steady drift.
std::vector<std::size_t> turn_order(std::size_t variants, std::size_t round);

}  // namespace ddprun::compare
