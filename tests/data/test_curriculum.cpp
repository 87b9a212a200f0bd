// Properties of every curriculum, size, world, seed and epoch.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>

#include "data/curriculum.hpp"

using ddprun::Last;
using ddprun::Sampler;
using namespace ddprun::data;
using Indices = std::vector<int64_t>;

namespace {

struct Case {
  Curriculum curriculum;
  int world;
  uint64_t seed;
  int64_t epoch;

  int64_t size() const { return static_cast<int64_t>(curriculum.difficulty.size()); }
  Indices rank(int rank, Last last = Last::pad) const {
    return curriculum_sampler(curriculum, rank, world, seed, last)->indices(epoch);
  }
};

Case any_case() {
  Case made;
  const int64_t size = *rc::gen::inRange<int64_t>(1, 150);
  for (int64_t i = 0; i < size; ++i) made.curriculum.difficulty.push_back(*rc::gen::inRange(-20, 20));  // some equal
  made.curriculum.start = *rc::gen::inRange(1, 101) / 100.0;
  made.curriculum.epochs = *rc::gen::inRange<int64_t>(1, 8);
  made.world = *rc::gen::inRange(1, 6);
  made.seed = *rc::gen::arbitrary<uint32_t>();
  made.epoch = *rc::gen::inRange<int64_t>(0, 10);
  return made;
}

}  // namespace

TEST_CASE("the ranks divide an epoch of the data set's length as the distributed sampler does") {
  CHECK(rc::check([] {
    const Case one = any_case();
    for (const Last last : {Last::pad, Last::drop, Last::exact}) {
      const Indices all = curriculum_sampler(one.curriculum, 0, 1, one.seed, Last::exact)->indices(one.epoch);
      RC_ASSERT(static_cast<int64_t>(all.size()) == one.size());
      for (int rank = 0; rank < one.world; ++rank) {
        const auto places = distributed_sampler(one.size(), rank, one.world, 0, false, last);
        const auto sampler = curriculum_sampler(one.curriculum, rank, one.world, one.seed, last);
        Indices expected;
        for (const int64_t place : places->indices(0)) expected.push_back(all[static_cast<std::size_t>(place)]);
        RC_ASSERT(sampler->indices(one.epoch) == expected);
        RC_ASSERT(sampler->size(rank) == places->size(rank));
      }
    }
  }));
}

TEST_CASE("an epoch draws only from the easiest samples, and their counts differ by one at most") {
  CHECK(rc::check([] {
    Case one = any_case();
    one.world = 1;
    const int64_t eligible = eligible_samples(one.curriculum, one.epoch);
    std::map<int64_t, int64_t> times;
    for (const int64_t index : one.rank(0)) ++times[index];
    // The epoch is long enough to draw every eligible sample.
    RC_ASSERT(static_cast<int64_t>(times.size()) == eligible);
    double hardest = -1e9;
    for (const auto& [index, count] : times) {
      hardest = std::max(hardest, one.curriculum.difficulty[static_cast<std::size_t>(index)]);
      RC_ASSERT(count >= one.size() / eligible);
      RC_ASSERT(count <= one.size() / eligible + 1);
    }
    for (int64_t index = 0; index < one.size(); ++index) {
      if (!times.contains(index)) RC_ASSERT(one.curriculum.difficulty[static_cast<std::size_t>(index)] >= hardest);
    }
  }));
}

TEST_CASE("the eligible part grows linearly from its start to all, and then the sampler is the distributed one") {
  Curriculum curriculum{std::vector<double>(100, 1.0), 0.2, 4};
  std::vector<int64_t> eligible;
  for (int64_t epoch = 0; epoch < 6; ++epoch) eligible.push_back(eligible_samples(curriculum, epoch));
  CHECK(eligible == std::vector<int64_t>{20, 40, 60, 80, 100, 100});
  curriculum.start = 0.001;
  CHECK(eligible_samples(curriculum, 0) == 1);
  CHECK(rc::check([] {
    Case one = any_case();
    one.epoch += one.curriculum.epochs;
    for (int rank = 0; rank < one.world; ++rank) {
      const auto plain = distributed_sampler(one.size(), rank, one.world, one.seed, true, Last::pad);
      RC_ASSERT(one.rank(rank) == plain->indices(one.epoch));
    }
  }));
}

TEST_CASE("epochs differ, and the same epoch repeats itself") {
  Case one{{std::vector<double>(50, 0.0), 0.5, 10}, 1, 3, 0};
  for (std::size_t i = 0; i < 50; ++i) one.curriculum.difficulty[i] = static_cast<double>(i);
  const Indices first = one.rank(0);
  CHECK(first == one.rank(0));
  // The second pass over the eligible samples is another permutation.
  const std::ptrdiff_t half = 25;
  CHECK(Indices(first.begin(), first.begin() + half) != Indices(first.begin() + half, first.end()));
  CHECK(std::set<int64_t>(first.begin(), first.begin() + half) == std::set<int64_t>(first.begin() + half, first.end()));
  one.epoch = 1;
  CHECK(first != one.rank(0));
}
