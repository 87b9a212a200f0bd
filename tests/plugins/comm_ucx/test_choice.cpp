// The rows of a tuning table that the communicator uses: for its number of ranks, by bytes.
#include <doctest/doctest.h>

#include "plugins/comm_ucx/choice.hpp"

using ddprun::Tuning;
using ddprun::ucx_backend::Algorithm;
using ddprun::ucx_backend::Table;

TEST_CASE("the rows are those of the number of ranks, or of the next larger number, else of the largest") {
  const Tuning tuning = Tuning::parse(
      "ddprun-tuning 1\n"
      "ucx 2 100 tree\nucx 2 max ring\n"
      "ucx 4 1000 hierarchical\nucx 4 2000 tree\nucx 4 max hierarchical\n",
      "ucx");
  const Table two(tuning, 2);
  CHECK(two.algorithm(0) == Algorithm::tree);
  CHECK(two.algorithm(100) == Algorithm::tree);
  CHECK(two.algorithm(101) == Algorithm::ring);
  CHECK(two.algorithm(uint64_t{1} << 60) == Algorithm::ring);
  CHECK(!two.has(Algorithm::hierarchical));
  for (const int ranks : {3, 4, 100}) {
    CAPTURE(ranks);
    const Table four(tuning, ranks);
    CHECK(four.algorithm(1000) == Algorithm::hierarchical);
    CHECK(four.algorithm(1001) == Algorithm::tree);
    CHECK(four.algorithm(2001) == Algorithm::hierarchical);
    CHECK(!four.has(Algorithm::ring));
  }
}
