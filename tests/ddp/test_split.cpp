// Groups of a part of the ranks, in a program that is not ours.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ddp/env_launched.hpp"
#include "support/text.hpp"

namespace ddprun::testing {
namespace {

Words backends() {
  Words names = {"gloo", "shm"};
#ifdef HAS_UCX
  names.emplace_back("ucx");
#else
  MESSAGE("skipped for ucx: this build has no libddprun_comm_ucx.so");
#endif
  return names;
}

const Words kHalves = {"rank 0: 1 of 2, local 1, sum 1, all 6, 1 alone 0, again 1",
                       "rank 1: 0 of 2, local 0, sum 1, all 6, 1 alone 1, again 1",
                       "rank 2: 1 of 2, local 1, sum 5, all 6, 1 alone 2, again 5",
                       "rank 3: 0 of 2, local 0, sum 5, all 6, 1 alone 3, again 5"};

TEST_CASE("groups by color and key, at once, and groups of groups") {
  for (const std::string& backend : backends()) {
    CAPTURE(backend);
    CHECK(sorted_lines(run(4, "halves", backend)) == kHalves);
  }
  CHECK(sorted_lines(run(1, "halves")) == Words{"rank 0: 0 of 1, local 0, sum 0, all 0, 1 alone 0, again 0"});
  CHECK(sorted_lines(run(3, "halves", "shm"))[2] == "rank 2: 0 of 1, local 0, sum 2, all 3, 1 alone 2, again 2");
}

TEST_CASE("ranks that another launcher has started") {
  const auto results = run_by_environment(4, "halves");
  for (std::size_t rank = 0; rank < 4; ++rank) CHECK(sorted_lines(results[rank]) == Words{kHalves[rank]});
}

TEST_CASE("groups of some ranks only") {
  for (const std::string& backend : backends()) {
    CAPTURE(backend);
    CHECK(sorted_lines(run(3, "some", backend)) ==
          Words{"rank 0: even 2 listed 0 2", "rank 1:", "rank 2: even 2 listed 1 2"});
  }
}

TEST_CASE("a group outlives the handle of the one that it was split from, and may use another backend") {
  CHECK(sorted_lines(run(4, "outlives")) == Words{"rank 0: 1", "rank 1: 1", "rank 2: 5", "rank 3: 5"});
  CHECK(sorted_lines(run(4, "other_backend")) == Words{"rank 0: 1 4", "rank 1: 1 4", "rank 2: 5 4", "rank 3: 5 4"});
}

TEST_CASE("two halves of the ranks train two models at once, each as it would alone") {
  for (const char* backend : {"gloo", "shm"}) {
    CAPTURE(backend);
    const Words both = sorted_lines(run(4, "two_models", backend));
    Words alone = sorted_lines(run(2, "model_0", backend));
    const Words second = sorted_lines(run(2, "model_1", backend));
    alone.insert(alone.end(), second.begin(), second.end());
    CHECK(both == alone);
  }
}

TEST_CASE("wrong calls name what differs") {
  const Words lines = sorted_lines(run(2, "refused"));
  REQUIRE(lines.size() == 10);
  const auto has = [&](const std::string& line) { return std::count(lines.begin(), lines.end(), line) == 1; };
  for (const std::string rank : {"rank 0: ", "rank 1: "}) {
    CHECK(has(rank + "2: new_group: the list of ranks is empty"));
    CHECK(has(rank + "2: new_group: rank 0 is named twice"));
    CHECK(has(rank + "2: new_group: rank 2: this group has 2 ranks"));
    CHECK(has(rank + "5: rank 0 calls new_group() of ranks 0, and rank 1 calls new_group() of ranks 1"));
    CHECK(has(rank +
              "4: rank 0 and rank 1 do not form one group: \"algorithm = auto\" and \"algorithm = ring\"; call split() "
              "with the same options on all ranks"));
  }
}

TEST_CASE("a late rank of a group is named after the group's own timeout") {
  const auto late = run(4, "late");
  CHECK(late.code == 5);
  CHECK_MESSAGE(contains(late.err, "gloo of ranks 2, 3: rank 0: "), late.err);
  CHECK_MESSAGE(contains(late.err, "timeout: rank 1 did not come within 4000 ms"), late.err);
  const auto monitored = run(4, "late_monitored");
  CHECK(monitored.code == 5);
  CHECK_MESSAGE(contains(monitored.err, "of 4 ranks these did not come: 2, 3"), monitored.err);
}

TEST_CASE("a rank that ends in a group ends the job with the first cause") {
  for (const char* backend : {"gloo", "shm"}) {
    CAPTURE(backend);
    const auto throws = run(4, "throws", backend);
    CHECK(throws.code == 1);
    CHECK_MESSAGE(contains(throws.err, "the disk is on fire"), throws.err);
    const auto dies = run(4, "dies", backend);
    CHECK(dies.code != 0);
    CHECK_MESSAGE(contains(dies.err, "rank 3"), dies.err);
  }
}

}  // namespace
}  // namespace ddprun::testing
