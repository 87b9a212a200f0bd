// Training over comm_ucx.
#include <doctest/doctest.h>

#include "e2e/over_backend.hpp"

using namespace ddprun::e2e;

TEST_CASE("ranks over UCX learn what they learn over Gloo's ring, and no memory of ours carries it unasked") {
  for (const int world : {2, 3}) {
    auto served = check_learning("ucx", world, {"auto", "ring", "tree", "hierarchical"});
    CHECK(served["ring"].algorithm == "ring");
    CHECK(served["tree"].algorithm == "tree");
    CHECK(served["hierarchical"] == Served{"hierarchical", "memory"});
    const std::string by_size = served["auto"].algorithm;
    CHECK_MESSAGE((by_size == "ring" || by_size == "tree" || by_size == "ring,tree"), by_size);
    for (const std::string over_ucx : {"auto", "ring", "tree"}) {
      CAPTURE(over_ucx);
      CHECK(served[over_ucx].transport != "");
      CHECK(served[over_ucx].transport.find("memory") == std::string::npos);
    }
  }
}

TEST_CASE("SIGKILL of a rank is named, and leaves no shared memory") {
  for (const std::string algorithm : {"auto", "ring", "hierarchical"}) check_death("ucx", algorithm);
}
