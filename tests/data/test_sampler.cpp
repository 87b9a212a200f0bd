#include <doctest/doctest.h>

#include "data/sampler.hpp"
#include "ddprun/error.hpp"

using namespace ddprun;
using namespace ddprun::data;
using Indices = std::vector<int64_t>;

TEST_CASE("randperm gives the numbers that PyTorch 2.11 gives") {
  // python: torch.randperm(10, generator=torch.Generator().manual_seed(7))
  CHECK(randperm(10, 7) == Indices{5, 0, 3, 4, 1, 7, 9, 6, 8, 2});
  CHECK(randperm(12, 0) == Indices{8, 0, 5, 9, 7, 4, 2, 10, 3, 1, 11, 6});
  CHECK(randperm(12, 1) == Indices{1, 4, 6, 8, 11, 0, 5, 3, 2, 9, 10, 7});
  CHECK(randperm(12, uint64_t{1} << 31) == Indices{10, 11, 7, 8, 9, 4, 3, 5, 0, 1, 6, 2});
  CHECK(randperm(0, 7).empty());
  CHECK(randperm(1, 7) == Indices{0});
}

TEST_CASE("only the low 32 bits of a seed count, as in PyTorch") {
  CHECK(randperm(50, (uint64_t{1} << 32) + 7) == randperm(50, 7));
  CHECK(randperm(50, uint64_t{1} << 31) != randperm(50, 0));
}

TEST_CASE("in a world of one, the sampler gives the whole data set in order in every epoch") {
  const auto sampler = distributed_sampler(5, 0, 1, 0, false, Last::pad);
  CHECK(sampler->indices(0) == Indices{0, 1, 2, 3, 4});
  CHECK(sampler->indices(9) == sampler->indices(0));
  CHECK(sampler->size(0) == 5);
}

TEST_CASE("in a world of one, shuffled, it is randperm seeded with seed plus epoch") {
  const auto sampler = distributed_sampler(100, 0, 1, 42, true, Last::pad);
  CHECK(sampler->indices(0) == randperm(100, 42));
  CHECK(sampler->indices(3) == randperm(100, 45));
  CHECK(sampler->size(0) == 100);
}

TEST_CASE("the distributed sampler selects every world-th index from the rank on") {
  CHECK(distributed_sampler(7, 0, 3, 0, false, Last::exact)->indices(0) == Indices{0, 3, 6});
  CHECK(distributed_sampler(7, 1, 3, 0, false, Last::exact)->indices(0) == Indices{1, 4});
  CHECK(distributed_sampler(7, 1, 3, 0, false, Last::pad)->indices(0) == Indices{1, 4, 0});
  CHECK(distributed_sampler(7, 2, 3, 0, false, Last::pad)->indices(0) == Indices{2, 5, 1});
  CHECK(distributed_sampler(7, 2, 3, 0, false, Last::drop)->indices(0) == Indices{2, 5});
}

TEST_CASE("padding repeats the data set as often as a large world size needs") {
  for (int rank = 0; rank < 8; ++rank) {
    CHECK(distributed_sampler(3, rank, 8, 0, false, Last::pad)->indices(0) == Indices{rank % 3});
  }
}

TEST_CASE("with a data set smaller than the world size, drop gives nothing, and exact leaves ranks empty") {
  CHECK(distributed_sampler(2, 0, 3, 0, true, Last::drop)->indices(0).empty());
  CHECK(distributed_sampler(2, 1, 3, 0, true, Last::exact)->indices(0).size() == 1);
  CHECK(distributed_sampler(2, 2, 3, 0, true, Last::exact)->indices(0).empty());
  CHECK(distributed_sampler(0, 2, 3, 0, true, Last::pad)->indices(0).empty());
}

TEST_CASE("invalid sizes, ranks and world sizes are refused with their numbers") {
  CHECK_THROWS_WITH_AS(distributed_sampler(10, 0, 0, 0, true, Last::pad), "world size 0: expected 1 or more", Error);
  CHECK_THROWS_WITH_AS(distributed_sampler(10, 4, 4, 0, true, Last::pad), "rank 4: expected 0 to 3, the world's last",
                       Error);
  CHECK_THROWS_AS(distributed_sampler(10, -1, 4, 0, true, Last::pad), Error);
  CHECK_THROWS_AS(distributed_sampler(10, 0, 4, 0, true, Last::pad)->size(4), Error);
  CHECK_THROWS_AS(distributed_sampler(-1, 0, 1, 0, true, Last::pad), Error);
  CHECK_THROWS_AS(randperm(-1, 0), Error);
}
