// Training over comm_shm.
#include <doctest/doctest.h>

#include "e2e/over_backend.hpp"

using namespace ddprun::e2e;

TEST_CASE("ranks that share memory learn what they learn over Gloo's ring, and the summary names what served") {
  for (const int world : {2, 3}) {
    auto served = check_learning("shm", world, {"auto", "direct", "staged"});
    CHECK(served["auto"] == Served{"direct", "memory"});
    CHECK(served["direct"] == Served{"direct", "memory"});
    CHECK(served["staged"] == Served{"staged", "memory"});
  }
}

TEST_CASE("SIGKILL of a rank is named, and leaves no shared memory") {
  check_death("shm", "auto");
}
