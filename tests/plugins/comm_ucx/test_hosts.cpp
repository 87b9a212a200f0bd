// Ranks on several hosts: by which devices they connect, and what they notice when a host is cut off.
#include <doctest/doctest.h>

#include <chrono>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plugins/comm_ucx/choice.hpp"
#include "plugins/comm_ucx/communicator.hpp"
#include "plugins/rank_host.hpp"
#include "plugins/tcp_addresses.hpp"
#include "support/variable.hpp"
#include "testing/hosts.hpp"

using namespace ddprun::testing;
using ddprun::CommError;
using ddprun::CommStatus;
using ddprun::DType;
using ddprun::Op;
using ddprun::ucx_backend::kOptions;
using ddprun::ucx_backend::UcxCommunicator;
using namespace std::chrono_literals;

namespace {

using Options = std::map<std::string, std::string>;

void reduce(UcxCommunicator& communicator, std::size_t count) {
  std::vector<float> values(count, 1);
  communicator.allreduce(allreduce_of(DType::float32, Op::sum, values.data(), values.data(), count)).wait(60s);
  if (values.back() != static_cast<float>(communicator.size())) throw std::runtime_error("wrong sum");
}

// The addresses of the connections of each rank, of which each is on a host of its own with these devices.
std::vector<std::string> connected_by(const Hosts& hosts, const std::vector<std::string>& devices) {
  const auto body = [&](Rank& rank) {
    const auto& device = devices[static_cast<std::size_t>(rank.rank())];
    RankHost host(rank, "auto", 20'000, -1, device.empty() ? Options{} : Options{{"devices", device}});
    UcxCommunicator communicator(host.host(kOptions));
    reduce(communicator, 1);
    rank.report(tcp_addresses());
    rank.meet();
  };
  const auto outcomes = run_ranks(hosts.count(), As::processes, 60s, body, hosts.placement(1));
  CHECK(failures(outcomes) == "");
  std::vector<std::string> said;
  for (const auto& outcome : outcomes) said.insert(said.end(), outcome.records.begin(), outcome.records.end());
  return said;
}

}  // namespace

TEST_CASE("a rank listens and connects on the named devices only, which may have another name on each host") {
  if (!Hosts::are_possible()) return;
  const Hosts hosts(2, 2);
  hosts.run(1, "ip link set eth1 down && ip link set eth1 name ib0 && ip link set ib0 up");
  CHECK(connected_by(hosts, {"eth0", "eth0"}) == std::vector<std::string>{"10.83.0.10", "10.83.0.11"});
  CHECK(connected_by(hosts, {"eth1", "ib0"}) == std::vector<std::string>{"10.84.0.10", "10.84.0.11"});
  const Variable named("UCX_NET_DEVICES", "eth0");
  CHECK(connected_by(hosts, {"", ""}) == std::vector<std::string>{"10.83.0.10", "10.83.0.11"});
  CHECK(connected_by(hosts, {"eth1", "ib0"}) == std::vector<std::string>{"10.84.0.10", "10.84.0.11"});
}

TEST_CASE("a host that is cut off is noticed long before the deadline, on both sides, in a line that names its ranks") {
  if (!Hosts::are_possible()) return;
  for (const auto& [algorithm, count] : {std::pair("ring", std::size_t{1'000'000}), {"tree", 1}, {"auto", 100'000}}) {
    CAPTURE(std::string(algorithm));
    const Hosts hosts(2);
    const auto body = [&, algorithm = algorithm, count = count](Rank& rank) {
      RankHost host(rank, algorithm, 60'000);
      UcxCommunicator communicator(host.host(kOptions));
      reduce(communicator, count);
      rank.meet();
      const auto start = Clock::now();
      try {
        for (int turn = 0;; ++turn) {
          if (turn == 3 && rank.rank() == 0) hosts.disconnect(1);
          reduce(communicator, count);
        }
      } catch (const CommError& lost) {
        rank.report(name_of(lost.status()) + " " + lost.what());
      }
      if (Clock::now() - start > 30s) throw std::runtime_error("noticed too late");
    };
    const auto outcomes = run_ranks(4, As::processes, 120s, body, hosts.placement(2));
    CHECK(failures(outcomes) == "");
    for (const auto& outcome : outcomes) {
      REQUIRE(outcome.records.size() == 1);
      const std::string peers = outcome.rank < 2 ? "2, 3" : "0, 1";
      CHECK(outcome.records[0] == name_of(CommStatus::peer_lost) + " allreduce: lost ranks " + peers +
                                      ": their hosts do not answer; a host or the network to it is down");
    }
  }
}

TEST_CASE("a slow network and a rank that comes late end nothing") {
  if (!Hosts::are_possible()) return;
  const Hosts hosts(2);
  // 1 Mbit/s: a queue that is often full, so packets are late or lost. The sum takes longer than a silence may last.
  hosts.run(1, "tc qdisc add dev eth0 root tbf rate 1mbit burst 8kb latency 300ms");
  for (const std::string algorithm : {"ring", "tree", "auto"}) {
    CAPTURE(algorithm);
    const auto body = [&](Rank& rank) {
      RankHost host(rank, algorithm, 60'000);
      UcxCommunicator communicator(host.host(kOptions));
      reduce(communicator, 100'000);
    };
    CHECK(failures(run_ranks(4, As::processes, 120s, body, hosts.placement(2))) == "");
  }
  hosts.run(1, "tc qdisc del dev eth0 root");
  // Longer than a silence may last, with messages of all protocols and many that wait to be read.
  const auto late = [&](Rank& rank) {
    RankHost host(rank, "tree", 60'000);
    UcxCommunicator communicator(host.host(kOptions));
    std::vector<float> values(2'000, 1);
    for (const std::size_t count : {1'000, 10'000, 50'000, 1'000'000}) {
      if (rank.rank() == 1) std::this_thread::sleep_for(4500ms);
      for (int i = 0; i < 500; ++i) {
        communicator.broadcast(allreduce_of(DType::float32, Op::sum, values.data(), values.data(), values.size()))
            .wait(60s);
      }
      reduce(communicator, count);
    }
  };
  CHECK(failures(run_ranks(2, As::processes, 120s, late, hosts.placement(1))) == "");
}
