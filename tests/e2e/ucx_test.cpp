// Training over comm_ucx.
#include <doctest/doctest.h>

#include <fstream>

#include "e2e/over_backend.hpp"
#include "testing/temp_dir.hpp"

using namespace ddprun::e2e;

TEST_CASE("ranks over UCX train as over Gloo's ring, and use ddprun's shared memory only on request") {
  for (const int world : {2, 3}) {
    auto executions = check_learning("ucx", world, {"auto", "ring", "tree", "halving_doubling", "hierarchical"});
    CHECK(executions["ring"].algorithm == "ring");
    CHECK(executions["tree"].algorithm == "tree");
    CHECK(executions["halving_doubling"].algorithm == "halving_doubling");
    CHECK(executions["hierarchical"] == Execution{"hierarchical", "memory"});
    const std::string by_size = executions["auto"].algorithm;
    CHECK_MESSAGE((by_size == "ring" || by_size == "tree" || by_size == "ring, tree"), by_size);
    for (const std::string over_ucx : {"auto", "ring", "tree", "halving_doubling"}) {
      CAPTURE(over_ucx);
      CHECK(executions[over_ucx].transport != "");
      CHECK(executions[over_ucx].transport.find("memory") == std::string::npos);
    }
  }
}

TEST_CASE("a table of tuning decides which algorithm auto uses in training") {
  const ddprun::testing::TempDir folder;
  const std::string table = folder.path() / "table";
  for (const std::string algorithm : {"ring", "tree", "hierarchical"}) {
    std::ofstream(table) << "ddprun-tuning 1\nucx max max " << algorithm << "\n";
    CHECK(train(2, "ucx", "auto", "{ tuning = \"" + table + "\" }").execution.algorithm == algorithm);
  }
}

TEST_CASE("SIGKILL of a rank is reported, and leaves no shared memory") {
  for (const std::string algorithm : {"auto", "ring", "hierarchical"}) check_death("ucx", algorithm);
}
