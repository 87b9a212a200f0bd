#include <doctest/doctest.h>

#include <cmath>

#include "tools/compare/statistics.hpp"

using namespace ddprun::compare;

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

TEST_CASE("one run has no verdict, and identical runs are equal") {
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

TEST_CASE("the 5 % level covers several comparisons together") {
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
