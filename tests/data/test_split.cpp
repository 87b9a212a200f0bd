#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/memory_dataset.hpp"
#include "data/sampler.hpp"
#include "data/standardize.hpp"
#include "support/error_of.hpp"

using namespace ddprun;
using namespace ddprun::data;
using namespace ddprun::testing;
using Indices = std::vector<int64_t>;

TEST_CASE("a split has the indices of PyTorch's random_split") {
  // random_split(range(10), [7, 3], generator=torch.Generator().manual_seed(42)) of PyTorch 2.11
  const Split split = random_split(10, 3, 42);
  CHECK(split.train == Indices{2, 6, 1, 8, 4, 5, 0});
  CHECK(split.validation == Indices{9, 3, 7});
}

TEST_CASE("each sample is in exactly one part, and the seed draws them") {
  for (const int64_t count : {0, 1, 40, 99, 100}) {
    CAPTURE(count);
    const Split split = random_split(100, count, 7);
    CHECK(static_cast<int64_t>(split.validation.size()) == count);
    Indices all = split.train;
    all.insert(all.end(), split.validation.begin(), split.validation.end());
    std::sort(all.begin(), all.end());
    CHECK(all == distributed_sampler(100, 0, 1, 0, false, Last::pad)->indices(0));
  }
  CHECK(random_split(100, 40, 7).validation == random_split(100, 40, 7).validation);
  CHECK(random_split(100, 40, 7).validation != random_split(100, 40, 8).validation);
}

TEST_CASE("a fraction is rounded down; a part that leaves no sample to either use is refused") {
  CHECK(validation_samples(0.1, 60'000) == 6'000);
  CHECK(validation_samples(0.29, 100) == 28);  // as random_split: floor(100 * 0.29) in floating point
  CHECK(validation_samples(5'000, 60'000) == 5'000);
  CHECK(validation_samples(1, 2) == 1);
  CHECK(validation_samples(std::nextafter(1.0, 0.0), 7) == 6);
  CHECK(error_of([] { validation_samples(0.009, 100); }) ==
        "2: leaves no sample to validate on: the training set has 100 samples; use a larger part");
  for (const double all : {100.0, 101.0, 9e15}) {
    CHECK(error_of([&] { validation_samples(all, 100); }) ==
          "2: leaves no sample to train on: the training set has 100 samples; use fewer");
  }
  CHECK(error_of([] { validation_samples(0.5, 1); }) ==
        "2: leaves no sample to validate on: the training set has 1 sample; use a larger part");
}

TEST_CASE("the ranks' samplers divide the training part, whatever their number; without a split they are unchanged") {
  const Split split = random_split(50, 13, 42);
  for (const int world : {1, 2, 3, 7}) {
    CAPTURE(world);
    Indices all;
    for (int rank = 0; rank < world; ++rank) {
      const auto sampler = subset_sampler(distributed_sampler(37, rank, world, 5, true, Last::exact), split.train);
      const Indices mine = sampler->indices(3);
      CHECK(sampler->size(rank) == static_cast<int64_t>(mine.size()));
      all.insert(all.end(), mine.begin(), mine.end());
    }
    Indices expected = split.train;
    std::sort(all.begin(), all.end());
    std::sort(expected.begin(), expected.end());
    CHECK(all == expected);
  }
  const auto all = [] { return distributed_sampler(50, 0, 1, 5, true, Last::pad); };
  CHECK(subset_sampler(all(), {})->indices(3) == all()->indices(3));
}

TEST_CASE("statistics are those of the training part") {
  const MemoryDataset<float, float> dataset({1}, {1, 100, 3, -100}, {1}, {0, 0, 0, 0});
  const Indices part = {2, 0};
  const Standardization by = fit_standardization(dataset, 2, part);
  CHECK(by.mean == std::vector<double>{2});
  CHECK(by.deviation == std::vector<double>{1});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const MemoryDataset<float, float> broken({1}, {nan, 1, 2, nan}, {1}, {0, 0, 0, 0});
  CHECK(error_of([&] {
          fit_standardization(broken, 0, Indices{1, 3});
        }) == "2: sample 3 holds a value that is NaN or infinite");
}
