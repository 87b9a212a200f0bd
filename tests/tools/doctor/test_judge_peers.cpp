// Findings about the network between hosts: pure functions.
#include <doctest/doctest.h>

#include <cerrno>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "support/contains.hpp"
#include "tools/doctor/peers.hpp"

using namespace ddprun;
using namespace ddprun::doctor;
using testing::contains;

namespace {

constexpr double kGigabit = 1e9 / 8;

PeersReport report_of(std::size_t hosts) {
  PeersReport report;
  for (std::size_t i = 0; i < hosts; ++i) {
    PeerHost host;
    host.rank = static_cast<int>(2 * i);
    host.name = "node" + std::to_string(i);
    host.interface = "eth0";
    host.address = "10.0.0." + std::to_string(i + 1);
    host.mtu = 1500;
    host.port = 40000;
    host.version = "0.1.0";
    report.hosts.push_back(host);
  }
  for (std::size_t from = 0; from < hosts; ++from) {
    for (std::size_t to = 0; to < hosts; ++to) {
      if (from == to) continue;
      PeerPair pair;
      pair.from = from;
      pair.to = to;
      pair.interface = "eth0";
      pair.round_trip_s = 50e-6;
      pair.bandwidth_bytes_per_s = 10 * kGigabit;
      pair.clock_ahead_s = 0.001;
      report.pairs.push_back(pair);
    }
  }
  return report;
}

// "state: name: value -> advice" of all that is not ok.
std::string problems(const PeersReport& report) {
  std::string text;
  for (const Finding& one : judge_peers(report)) {
    CHECK((one.state == State::ok) == one.advice.empty());
    if (one.state == State::ok) continue;
    text += std::string(name_of(one.state)) + ": " + one.name + ": " + one.value + " -> " + one.advice + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("hosts in order: one finding each") {
  CHECK(problems(report_of(3)).empty());
  CHECK(judge_peers(report_of(3)).size() == 3);
  CHECK(judge_peers(report_of(3))[1].value == "rank 2, eth0 10.0.0.2, MTU 1500");
}

TEST_CASE("a port that cannot be reached: the address, the errno in words, and whether it is one way") {
  auto report = report_of(2);
  report.pairs[0].connect_errno = ETIMEDOUT;
  CHECK(contains(problems(report),
                 "error: node0 -> node1: cannot connect to 10.0.0.2 port 40000: Connection timed out; the other "
                 "direction connects -> a firewall, or an address of another network"));
  report.pairs[1].connect_errno = EHOSTUNREACH;
  CHECK_FALSE(contains(problems(report), "the other direction"));
  CHECK(contains(problems(report),
                 "node1 -> node0: cannot connect to 10.0.0.1 port 40000: No route to host -> a firewall"));
}

TEST_CASE("a host's own error is one finding, not one per pair") {
  auto report = report_of(3);
  report.hosts[1].error = "no interface";
  for (PeerPair& pair : report.pairs) {
    if (pair.from == 1 || pair.to == 1) pair.error = "node1: no interface";
  }
  CHECK(problems(report).find('\n') == problems(report).size() - 1);
  CHECK(contains(problems(report), "error: node1: no interface"));
}

TEST_CASE("one direction much slower, and one pair much slower than the others") {
  auto report = report_of(2);
  report.pairs[0].bandwidth_bytes_per_s = kGigabit;
  CHECK(contains(problems(report), "warning: node0 -> node1: 1 Gbit/s, the other direction 10 Gbit/s"));
  report.pairs[0].bandwidth_bytes_per_s = 6 * kGigabit;
  CHECK(problems(report).empty());

  report = report_of(4);
  for (PeerPair& pair : report.pairs) {
    if (pair.from + pair.to == 5) pair.bandwidth_bytes_per_s = kGigabit;  // 2 and 3, both ways
  }
  CHECK(contains(problems(report), "warning: node2 -> node3: 1 Gbit/s, the median of all pairs 10 Gbit/s"));
  CHECK_FALSE(contains(problems(report), "node1"));
}

TEST_CASE("large packets that are lost, and a test that broke off") {
  auto report = report_of(2);
  report.pairs[0].bandwidth_bytes_per_s = 0;
  CHECK(contains(problems(report), "error: node0 -> node1: small messages arrive, large ones do not -> "));
  report.pairs[0].bandwidth_bytes_per_s.reset();
  report.pairs[0].error = "Connection reset by peer";
  CHECK(contains(problems(report), "error: node0 -> node1: connected, then: Connection reset by peer"));
}

TEST_CASE("MTUs that differ between hosts") {
  auto report = report_of(3);
  report.hosts[2].mtu = 9000;
  CHECK(contains(problems(report), "warning: MTU: node0 has 1500, node2 has 9000 -> set the same MTU"));
}

TEST_CASE("a clock that differs by more than a second, once per host") {
  auto report = report_of(3);
  for (PeerPair& pair : report.pairs) {
    if (pair.to == 2) pair.clock_ahead_s = 61;
    if (pair.from == 2) pair.clock_ahead_s = -61;
  }
  CHECK(problems(report).find('\n') == problems(report).size() - 1);
  CHECK(contains(problems(report), "warning: clock of node2: 1 min 01 s ahead of that of node0 -> set the clocks"));
  for (PeerPair& pair : report.pairs) pair.clock_ahead_s = pair.from < pair.to ? -2.0 : 2.0;
  CHECK(contains(problems(report), "clock of node1: 2.00 s behind that of node0"));
  for (PeerPair& pair : report.pairs) pair.clock_ahead_s = 1.0;
  CHECK(problems(report).empty());
}

TEST_CASE("versions that differ, and hosts of one name") {
  auto report = report_of(2);
  report.hosts[1].version = "0.2.0";
  CHECK(contains(problems(report), "error: ddprun: versions differ: 0.1.0, 0.2.0"));
  report = report_of(2);
  report.hosts[0].name = report.hosts[1].name = "pod";
  CHECK(judge_peers(report)[0].name == "pod[0]");
  CHECK(judge_peers(report)[1].name == "pod[2]");
}

TEST_CASE("values that no network gives do no harm") {
  auto report = report_of(3);
  for (const double odd : {std::numeric_limits<double>::infinity(), -1.0, 1e308, 5e-324}) {
    for (PeerPair& pair : report.pairs) pair.bandwidth_bytes_per_s = pair.round_trip_s = pair.clock_ahead_s = odd;
    for (PeerHost& host : report.hosts) host.mtu = 0;
    judge_peers(report);
    CHECK_FALSE(peers_text(report).empty());
  }
  CHECK(problems(PeersReport{}).empty());
  CHECK(peers_text(PeersReport{}).empty());
}

TEST_CASE("the table has a row per ordered pair, and the JSON has all values") {
  auto report = report_of(2);
  report.pairs[1].connect_errno = ECONNREFUSED;
  report.pairs[1].bandwidth_bytes_per_s.reset();
  const std::string text = peers_text(report);
  CHECK(contains(text, "node0 (rank 0)  node1 (rank 2)  eth0       10.0.0.2  40000     50.0 us      10  ok\n"));
  CHECK(contains(text, "Connection refused\n"));
  const auto json = peers_json(report, judge_peers(report));
  CHECK(json["hosts"].size() == 2);
  CHECK(json["pairs"][0]["bandwidth_bytes_per_s"] == 10 * kGigabit);
  CHECK(json["pairs"][1]["bandwidth_bytes_per_s"].is_null());
}
