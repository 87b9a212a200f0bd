#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <numeric>

#include "data/loader.hpp"
#include "data/sampler.hpp"

using ddprun::Last;
using namespace ddprun::data;

TEST_CASE("largest remainders, computed by hand") {
  CHECK(apportion(64, {1, 1}) == std::vector<int64_t>{32, 32});
  CHECK(apportion(64, {2, 1}) == std::vector<int64_t>{43, 21});  // 42.67 and 21.33
  CHECK(apportion(10, {1, 1, 1}) == std::vector<int64_t>{4, 3, 3});
  CHECK(apportion(2, {1, 1, 1}) == std::vector<int64_t>{1, 1, 0});
  CHECK(apportion(5, {0, 3}) == std::vector<int64_t>{0, 5});
  CHECK(apportion(0, {2, 1}) == std::vector<int64_t>{0, 0});
}

TEST_CASE("the counts add up, and each is its exact value rounded up or down") {
  CHECK(rc::check([] {
    const int64_t total = *rc::gen::inRange<int64_t>(0, 5000);
    std::vector<double> weights;
    for (int i = *rc::gen::inRange(1, 9); i > 0; --i) weights.push_back(*rc::gen::inRange(1, 1000) / 7.0);
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    const auto counts = apportion(total, weights);
    RC_ASSERT(std::accumulate(counts.begin(), counts.end(), int64_t{0}) == total);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      RC_ASSERT(std::abs(static_cast<double>(counts[i]) - static_cast<double>(total) * weights[i] / sum) < 1);
      RC_ASSERT(counts[i] >= 0);
    }
  }));
}

TEST_CASE("whatever the weights, a step has the same samples in the same order as with equal weights") {
  CHECK(rc::check([] {
    const int world = *rc::gen::inRange(1, 5);
    const int64_t samples = *rc::gen::inRange<int64_t>(1, 120), batch = *rc::gen::inRange<int64_t>(1, 9);
    std::vector<double> weights;
    for (int rank = 0; rank < world; ++rank) weights.push_back(*rc::gen::inRange(1, 20));
    std::vector<Batches> equal;
    std::size_t steps = 0;
    for (int rank = 0; rank < world; ++rank) {
      equal.push_back(
          cut_batches(distributed_sampler(samples, rank, world, 3, true, Last::exact)->indices(0), batch, false));
      steps = std::max(steps, equal.back().size());
    }
    for (Batches& of_rank : equal) of_rank.resize(steps);
    std::vector<Batches> shared;
    for (int rank = 0; rank < world; ++rank) shared.push_back(share_out(equal, rank, weights));
    for (std::size_t step = 0; step < steps; ++step) {
      std::vector<int64_t> expected, got;
      for (int rank = 0; rank < world; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        expected.insert(expected.end(), equal[r][step].begin(), equal[r][step].end());
        got.insert(got.end(), shared[r][step].begin(), shared[r][step].end());
      }
      RC_ASSERT(got == expected);
      const auto counts = apportion(static_cast<int64_t>(expected.size()), weights);
      for (std::size_t r = 0; r < shared.size(); ++r) {
        RC_ASSERT(static_cast<int64_t>(shared[r][step].size()) == counts[r]);
      }
    }
  }));
}
