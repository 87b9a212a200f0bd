#include "tools/predict/recording.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <numeric>

using namespace ddprun::predict;

TEST_CASE("an allreduce begins when its bucket is full and the one before it is over") {
  const StepParts parts = {2, 4, 1};
  const std::vector<Bucket> buckets = {{1, 0.5}, {1, 0}};
  const auto step = [&](double first, double second) { return replay(parts, buckets, {first, second}); };
  CHECK(step(0, 0).step == 7);
  CHECK(step(1.5, 0.25).exposed == doctest::Approx(0.25));  // backward hides the first
  CHECK(step(3, 0.25).exposed == doctest::Approx(1.25));    // the second waits for the first
  CHECK(step(3, 0.25).step == doctest::Approx(8.25));
}

TEST_CASE("a step takes at least its parts or its communication, and at most both") {
  CHECK(rc::check([] {
    const auto any = [] { return *rc::gen::inRange(1, 1000) * 1e-4; };
    const StepParts parts = {any(), any(), any()};
    std::vector<Bucket> buckets;
    std::vector<double> seconds;
    double remaining = 1;
    for (int i = *rc::gen::inRange(1, 10); i > 0; --i) {
      remaining *= *rc::gen::inRange(0, 101) / 100.0;
      buckets.push_back({1, remaining});
      seconds.push_back(any());
    }
    const double all = std::accumulate(seconds.begin(), seconds.end(), 0.0);
    const Replayed step = replay(parts, buckets, seconds);
    RC_ASSERT(step.step >= std::max(parts.total(), parts.forward + all + parts.optimizer) - 1e-12);
    RC_ASSERT(step.step <= parts.total() + all + 1e-12);
    RC_ASSERT(std::abs(step.step - parts.total() - step.exposed) < 1e-12);
  }));
}
