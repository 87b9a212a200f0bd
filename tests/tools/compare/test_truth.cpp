// The reliability of verdicts: thousands of comparisons with a known truth.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "tools/compare/statistics.hpp"
#include "tools/compare/synthetic.hpp"

using namespace ddprun::compare;

namespace {

constexpr int kTrials = 1000;
const std::vector<std::string> kKinds = {"normal", "lognormal", "heavy", "drift"};

struct Rates {
  double different = 0;  // fraction of trials with a verdict other than "no difference"
  double missed = 0;     // fraction of trials whose interval missed the truth
};

Rates rates_of(const std::string& kind, std::size_t rounds, double truth, double noise) {
  Noise random(17);
  int different = 0, missed = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Sample sample = sample_of(kind, rounds, truth, noise, random);
    const Ratio ratio = ratio_by_rounds(sample.times, sample.base, static_cast<uint64_t>(trial));
    different += verdict_of(ratio, ratio.p) != Verdict::unclear;
    missed += truth < ratio.low || truth > ratio.high;
  }
  return {static_cast<double>(different) / kTrials, static_cast<double>(missed) / kTrials};
}

}  // namespace

TEST_CASE("equals are judged different at most 5 % of the time") {
  for (const std::size_t rounds : {3, 5, 10}) {
    for (const std::string& kind : kKinds) {
      const Rates rates = rates_of(kind, rounds, 1, kind == "lognormal" ? 0.05 : 0.01);
      std::printf("%2zu rounds, %-9s noise: %.1f %% false verdicts\n", rounds, kind.c_str(), 100 * rates.different);
      CHECK_MESSAGE(rates.different <= 0.05, kind << ", " << rounds << " rounds");
    }
  }
}

TEST_CASE("the interval contains the truth 95 % of the time") {
  for (const std::size_t rounds : {5, 10}) {
    for (const std::string& kind : kKinds) {
      const Rates rates = rates_of(kind, rounds, 1.05, 0.01);
      CHECK_MESSAGE(rates.missed <= 0.05, kind << ", " << rounds << " rounds: " << rates.missed);
    }
  }
}

TEST_CASE("a difference of 5 % is found") {
  const auto found = [](std::size_t rounds, double noise) {
    const double share = rates_of("normal", rounds, 1.05, noise).different;
    std::printf("5 %% difference, %.0f %% noise, %2zu rounds: found %.0f %% of the time\n", 100 * noise, rounds,
                100 * share);
    return share;
  };
  CHECK(found(5, 0.01) >= 0.99);
  CHECK(found(5, 0.02) >= 0.7);
  CHECK(found(7, 0.02) >= 0.85);
  CHECK(found(10, 0.02) >= 0.95);
  CHECK(found(20, 0.02) >= 0.99);
}

TEST_CASE("runs that were not interleaved: equals, of unequal numbers") {
  Noise random(3);
  int different = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Sample sample = sample_of("normal", 8, 1, 0.02, random);
    const std::vector<double> fewer(sample.base.begin(), sample.base.begin() + 5);
    const Ratio ratio = ratio_of_groups(sample.times, fewer, static_cast<uint64_t>(trial));
    different += verdict_of(ratio, ratio.p) != Verdict::unclear;
  }
  CHECK(static_cast<double>(different) / kTrials <= 0.05);
}

TEST_CASE("adding rounds until the interval is narrow causes no false verdicts") {
  Noise random(29);
  int different = 0;
  constexpr int kSequences = 300;
  for (int trial = 0; trial < kSequences; ++trial) {
    const Sample sample = sample_of("normal", 20, 1, 0.02, random);
    Ratio ratio;
    for (std::size_t rounds = 5; rounds <= 20; ++rounds) {
      const auto end = static_cast<std::ptrdiff_t>(rounds);
      ratio = ratio_by_rounds({sample.times.begin(), sample.times.begin() + end},
                              {sample.base.begin(), sample.base.begin() + end}, 1);
      if (ratio.half_width() < 0.02) break;
    }
    different += verdict_of(ratio, ratio.p) != Verdict::unclear;
  }
  std::printf("until the interval is within 2 %%: %.1f %% false verdicts\n", 100.0 * different / kSequences);
  CHECK(static_cast<double>(different) / kSequences <= 0.05);
}
