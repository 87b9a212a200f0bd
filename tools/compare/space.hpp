// The trials of a sweep: every combination, or a random sample.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ddprun::compare {

// The overrides of one trial: "optimizer.lr=0.1", one for each varying key.
using Trial = std::vector<std::string>;

// Each text is "key=value,value" or, for random trials, also a range "key=0.001..0.1". A range is log-uniform, so each
// power of ten has the same probability (Bergstra and Bengio 2012); if both ends are integers, so are the values. Ends
// are above 0. With `draws`: that many different trials from `seed`, or fewer if there are fewer. Without: the grid, in
// which the last key's values change fastest. Throws Error(usage).
std::vector<Trial> trials_of(const std::vector<std::string>& varied, std::optional<int64_t> draws, uint64_t seed);

}  // namespace ddprun::compare
