// Three hosts of two ranks under the engines of clusters: srun and mpirun.
#include <doctest/doctest.h>

#include "e2e/cluster_launchers.hpp"
#include "e2e/mpirun.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

TEST_CASE("mpirun with a daemon on each of three hosts trains as one process, over gloo and ucx") {
  require_hosts();
  if (!has_mpirun()) return;
  for (const std::string& backend : cluster_backends()) {
    CAPTURE(backend);
    Cluster cluster;
    check_equal(cluster.alone(), cluster, with_mpirun(cluster, {"comm.backend=" + backend}));
  }
}

}  // namespace
