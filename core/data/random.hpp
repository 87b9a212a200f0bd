// Random numbers that are the same on every machine, for computed data. Private to the module.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <random>
#include <utility>

#include "ddprun/plugin/detail/mix.hpp"

namespace ddprun::data {

// Standard normal values by Box and Muller (1958), because std::normal_distribution differs between standard libraries.
class Normal {
 public:
  explicit Normal(uint64_t seed) : generator_(seed) {}
  double operator()() {
    if (spare_) return *std::exchange(spare_, std::nullopt);
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    const double angle = 2 * std::numbers::pi * uniform();
    spare_ = radius * std::sin(angle);
    return radius * std::cos(angle);
  }

 private:
  // In [0, 1), with 53 bits, the precision of a double.
  double uniform() { return static_cast<double>(generator_() >> 11) * 0x1p-53; }

  std::mt19937_64 generator_;
  std::optional<double> spare_;
};

}  // namespace ddprun::data
