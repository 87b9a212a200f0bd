// Hosts out of namespaces: what they share, and what they do not.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <set>

#include "ddprun/plugin/host.hpp"
#include "ddprun/plugin/network_interface.hpp"
#include "testing/hosts.hpp"

using namespace ddprun::testing;
using namespace std::chrono_literals;

namespace {

bool reaches(const std::string& address) {
  return std::system(("timeout 20 bash -c '</dev/tcp/" + address + "/9' 2>&1 | grep -q refused").c_str()) == 0;
}

}  // namespace

TEST_CASE("ranks of one host share its namespaces, and ranks of two hosts share a network only") {
  if (!Hosts::are_possible()) return;
  const Hosts hosts(2, 2);
  const auto outcomes = run_ranks(
      4, As::processes, 60s,
      [&](Rank& rank) {
        if (rank.rank() % 2 == 0 && shm_open("/ddprun-test-hosts", O_CREAT | O_EXCL | O_RDWR, 0600) < 0) {
          throw std::runtime_error("the hosts share /dev/shm");
        }
        rank.meet();
        rank.report(ddprun::host_identity());
        rank.report(std::to_string(getpid()));
        rank.report(ddprun::list_of(ddprun::network_interfaces()));
        for (int device = 0; device < 2; ++device) {
          if (!reaches(hosts.address(1 - rank.rank() / 2, device))) throw std::runtime_error("no route");
        }
      },
      hosts.placement(2));
  REQUIRE(failures(outcomes) == "");
  const auto reported = [&](int rank, int what) { return outcomes[rank].records.at(what); };
  CHECK(reported(0, 0) == reported(1, 0));
  CHECK(reported(2, 0) == reported(3, 0));
  CHECK(reported(0, 0) != reported(2, 0));
  CHECK(std::set{reported(0, 1), reported(1, 1)} == std::set{reported(2, 1), reported(3, 1)});
  CHECK(reported(1, 2) == "lo (127.0.0.1), eth0 (10.83.0.10), eth1 (10.84.0.10)");
  CHECK(reported(2, 2) == "lo (127.0.0.1), eth0 (10.83.0.11), eth1 (10.84.0.11)");
}

TEST_CASE("a rank's death on a host is that rank's alone, and no process outlives the hosts") {
  if (!Hosts::are_possible()) return;
  const auto is_left = [] { return std::system("cat /proc/[0-9]*/cmdline 2>/dev/null | grep -q '[n]ot-left'") == 0; };
  {
    const Hosts hosts(1);
    const auto outcomes = run_ranks(
        2, As::processes, 60s,
        [&](Rank& rank) {
          if (rank.rank() == 0) raise(SIGKILL);
          if (std::system("setsid sh -c 'sleep 1000; : not-left' >/dev/null 2>&1 &") != 0)
            throw std::runtime_error("sh");
          std::this_thread::sleep_for(100ms);
        },
        hosts.placement(2));
    CHECK(outcomes[0].describe() == "rank 0: killed by signal 9 (Killed)");
    CHECK(outcomes[1].describe() == "rank 1: finished");
    CHECK(is_left());
  }
  CHECK_FALSE(is_left());
}
