// Properties for every size, world, seed and epoch.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "data/sampler.hpp"

using ddprun::Last;
using ddprun::Sampler;
using namespace ddprun::data;
using Indices = std::vector<int64_t>;

namespace {

struct World {
  int64_t size;
  int world;
  uint64_t seed;
  int64_t epoch;
  bool shuffle;

  Indices rank(int rank, Last last) const {
    const auto sampler = distributed_sampler(size, rank, world, seed, shuffle, last);
    const auto indices = sampler->indices(epoch);
    for (int other = 0; other < world; ++other) {
      const auto other_sampler = distributed_sampler(size, other, world, seed, shuffle, last);
      RC_ASSERT(sampler->size(other) == static_cast<int64_t>(other_sampler->indices(epoch).size()));
    }
    return indices;
  }

  // All ranks' indices, one rank after the other.
  Indices all(Last last) const {
    Indices indices;
    for (int r = 0; r < world; ++r) {
      const auto more = rank(r, last);
      indices.insert(indices.end(), more.begin(), more.end());
    }
    return indices;
  }
};

World any_world() {
  return {*rc::gen::inRange<int64_t>(0, 200), *rc::gen::inRange(1, 12), *rc::gen::arbitrary<uint64_t>(),
          *rc::gen::inRange<int64_t>(0, 1000), *rc::gen::arbitrary<bool>()};
}

Indices sorted(Indices indices) {
  std::sort(indices.begin(), indices.end());
  return indices;
}

Indices counted(int64_t size) {
  Indices indices(static_cast<std::size_t>(size));
  std::iota(indices.begin(), indices.end(), int64_t{0});
  return indices;
}

}  // namespace

TEST_CASE("randperm is a permutation") {
  CHECK(rc::check([] {
    const auto size = *rc::gen::inRange<int64_t>(0, 2000);
    RC_ASSERT(sorted(randperm(size, *rc::gen::arbitrary<uint64_t>())) == counted(size));
  }));
}

TEST_CASE("exact gives every sample to exactly one rank, and sizes differ by one at most") {
  CHECK(rc::check([] {
    const World world = any_world();
    RC_ASSERT(sorted(world.all(Last::exact)) == counted(world.size));
    const auto first = world.rank(0, Last::exact).size();
    const auto last = world.rank(world.world - 1, Last::exact).size();
    RC_ASSERT(first - last <= 1u);
  }));
}

TEST_CASE("pad gives all ranks the same number and omits no sample") {
  CHECK(rc::check([] {
    const World world = any_world();
    const auto all = world.all(Last::pad);
    RC_ASSERT(all.size() == world.rank(0, Last::pad).size() * static_cast<std::size_t>(world.world));
    RC_ASSERT(std::set<int64_t>(all.begin(), all.end()).size() == static_cast<std::size_t>(world.size));
    RC_ASSERT(static_cast<int64_t>(all.size()) - world.size < world.world);
  }));
}

TEST_CASE("drop gives all ranks the same number, no sample twice, and omits fewer samples than there are ranks") {
  CHECK(rc::check([] {
    const World world = any_world();
    const auto all = world.all(Last::drop);
    RC_ASSERT(all.size() == world.rank(0, Last::drop).size() * static_cast<std::size_t>(world.world));
    RC_ASSERT(std::set<int64_t>(all.begin(), all.end()).size() == all.size());
    RC_ASSERT(world.size - static_cast<int64_t>(all.size()) < world.world);
  }));
}

TEST_CASE("an epoch has the same order each time, and if shuffled another order than the next epoch") {
  CHECK(rc::check([] {
    const auto seed = *rc::gen::arbitrary<uint64_t>();
    const auto epoch = *rc::gen::inRange<int64_t>(0, 1000);
    const auto sampler = distributed_sampler(500, 1, 2, seed, true, Last::exact);
    RC_ASSERT(sampler->indices(epoch) == sampler->indices(epoch));
    RC_ASSERT(sampler->indices(epoch) != sampler->indices(epoch + 1));
  }));
}
