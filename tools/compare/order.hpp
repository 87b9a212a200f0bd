// In which order the variants run.
#pragma once

#include <cstddef>
#include <vector>

namespace ddprun::compare {

// The order of `variants` variants in a round (from 0). Two: AB BA BA AB, so that a steady drift of the machine meets
// both alike. More: a row of Williams' (1949) square, in which each variant stands at each place and follows each other
// one equally often, and in the next round the same row backwards, so that 2 * variants rounds are balanced, and any
// two rounds cancel a steady drift.
std::vector<std::size_t> turn_order(std::size_t variants, std::size_t round);

}  // namespace ddprun::compare
