// What a sweep tries: every combination, or some drawn at random.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ddprun::compare {

// The overrides of one trial: "optimizer.lr=0.1", one for each key that varies.
using Trial = std::vector<std::string>;

// Each text is "key=value,value" or, where trials are drawn, also a range "key=0.001..0.1": log-uniform, which gives
// each power of ten the same chance (Bergstra and Bengio 2012); whole numbers where both ends are written as such. Ends
// are above 0. With `draws` so many different trials from `seed` (fewer where there are not so many), else the grid,
// the last key's values changing fastest. Throws Error(usage).
std::vector<Trial> trials_of(const std::vector<std::string>& varied, std::optional<int64_t> draws, uint64_t seed);

}  // namespace ddprun::compare
