// Synthetic run times with a known true ratio, for several kinds of noise.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tools/compare/statistics.hpp"

namespace ddprun::compare {

// The same numbers on every library, unlike std::normal_distribution.
class Noise {
 public:
  explicit Noise(uint64_t seed) : generator_(seed) {}

  double uniform() { return (static_cast<double>(generator_() >> 11) + 0.5) * 0x1p-53; }
  // Box and Muller.
  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform()); }
  // Student's with 3 degrees of freedom: some runs are far outliers.
  double heavy() {
    const double a = normal(), b = normal(), c = normal();
    return normal() / std::sqrt((a * a + b * b + c * c) / 3);
  }

 private:
  std::mt19937_64 generator_;
};

struct Sample {
  std::vector<double> base;   // around 1
  std::vector<double> times;  // around `ratio`
};

// `kind`: "normal", "lognormal", "heavy" (one sigma is `noise`), or "drift": both follow one random walk with a slope,
// far larger than the noise, and run in turn_order().
inline Sample sample_of(const std::string& kind, std::size_t rounds, double ratio, double noise, Noise& random) {
  Sample sample;
  double drift = 1;
  const auto one = [&] {
    if (kind == "lognormal") return std::exp(noise * random.normal());
    if (kind == "heavy") return 1 + noise * random.heavy();
    if (kind == "normal") return 1 + noise * random.normal();
    drift += 2 * noise + noise * random.normal();
    return drift * (1 + noise * random.normal());
  };
  for (std::size_t round = 0; round < rounds; ++round) {
    double pair[2];
    for (const std::size_t which : turn_order(2, round)) pair[which] = one();
    sample.base.push_back(pair[0]);
    sample.times.push_back(ratio * pair[1]);
  }
  return sample;
}

}  // namespace ddprun::compare
