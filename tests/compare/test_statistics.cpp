#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "compare/statistics.hpp"
#include "compare/synthetic.hpp"

using namespace ddprun::compare;

namespace {

constexpr int kTrials = 1000;
const std::vector<std::string> kKinds = {"normal", "lognormal", "heavy", "drift"};

struct Rates {
  double different = 0;  // share of the trials in which the verdict was not "no difference"
  double missed = 0;     // in which the interval did not hold the truth
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

TEST_CASE("equals are called different at most 5 % of the time") {
  for (const std::size_t rounds : {3, 5, 10}) {
    for (const std::string& kind : kKinds) {
      const Rates rates = rates_of(kind, rounds, 1, kind == "lognormal" ? 0.05 : 0.01);
      std::printf("%2zu rounds, %-9s noise: %.1f %% false verdicts\n", rounds, kind.c_str(), 100 * rates.different);
      CHECK_MESSAGE(rates.different <= 0.05, kind << ", " << rounds << " rounds");
    }
  }
}

TEST_CASE("the interval holds the truth 95 % of the time") {
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

TEST_CASE("ratio, interval and seed") {
  const std::vector<double> base = {1.0, 1.01, 0.99, 1.02, 1.0}, times = {2.0, 2.1, 1.9, 2.02, 2.05};
  const Ratio ratio = ratio_by_rounds(times, base, 1);
  CHECK(ratio.value == doctest::Approx(2.02));
  CHECK(ratio.low < ratio.value);
  CHECK(ratio.high > ratio.value);
  CHECK(ratio.low > 1.8);
  CHECK(ratio.high < 2.2);
  CHECK(verdict_of(ratio, ratio.p) == Verdict::slower);
  const Ratio again = ratio_by_rounds(times, base, 1);
  CHECK(again.low == ratio.low);
  CHECK(again.p == ratio.p);
  const Ratio inverse = ratio_by_rounds(base, times, 1);
  CHECK(inverse.low == doctest::Approx(1 / ratio.high));
  CHECK(verdict_of(inverse, inverse.p) == Verdict::faster);
}

TEST_CASE("one run shows nothing, and identical runs are equal") {
  const Ratio alone = ratio_by_rounds({2.0}, {1.0}, 1);
  CHECK(alone.value == 2);
  CHECK(alone.low == 0);
  CHECK(std::isinf(alone.high));
  CHECK(verdict_of(alone, alone.p) == Verdict::unclear);
  CHECK(verdict_of(ratio_of_groups({2.0}, {1.0, 1.1}, 1), 1) == Verdict::unclear);
  const Ratio same = ratio_by_rounds({1.5, 1.5, 1.5}, {1.5, 1.5, 1.5}, 1);
  CHECK(same.low == 1);
  CHECK(same.high == 1);
  CHECK(same.p == 1);
  CHECK(verdict_of(same, same.p) == Verdict::unclear);
}

TEST_CASE("several comparisons share the 5 %") {
  const auto adjusted = holm({0.01, 0.04, 0.03, 0.005});
  CHECK(adjusted[0] == doctest::Approx(0.03));
  CHECK(adjusted[1] == doctest::Approx(0.06));
  CHECK(adjusted[2] == doctest::Approx(0.06));
  CHECK(adjusted[3] == doctest::Approx(0.02));
  CHECK(holm({0.9, 0.8})[0] == 1);
  CHECK(holm({}).empty());
  const Ratio ratio{1.05, 1.01, 1.09, 0.03};
  CHECK(verdict_of(ratio, 0.03) == Verdict::slower);
  CHECK(verdict_of(ratio, 0.06) == Verdict::unclear);
}

TEST_CASE("going on until the interval is narrow makes no false verdicts") {
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
