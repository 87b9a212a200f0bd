// Training over comm_shm.
#include <doctest/doctest.h>

#include "e2e/over_backend.hpp"

using namespace ddprun::e2e;

TEST_CASE("ranks over shm train as over Gloo's ring, and the summary names the algorithm and the transport") {
  for (const int world : {2, 3}) {
    auto executions = check_learning("shm", world, {"auto", "direct", "staged"});
    CHECK(executions["auto"] == Execution{"direct", "memory"});
    CHECK(executions["direct"] == Execution{"direct", "memory"});
    CHECK(executions["staged"] == Execution{"staged", "memory"});
  }
}

TEST_CASE("SIGKILL of a rank is reported, and leaves no shared memory") {
  check_death("shm", "auto");
}
