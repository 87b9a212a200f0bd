// Findings about the network between hosts: pure functions.
#include <doctest/doctest.h>

#include <cerrno>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "support/golden.hpp"
#include "tools/doctor/peers.hpp"

using namespace ddprun;
using namespace ddprun::doctor;

namespace {

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

TEST_CASE("all that the doctor says about the network between hosts") {
  std::string text;
  for (const Finding& one : judge_peers(report_of(3))) {
    CHECK(one.state == State::ok);
    text += one.name + ": " + one.value + "\n";
  }
  const auto add = [&](const std::string& title, std::size_t hosts, const std::function<void(PeersReport&)>& change) {
    auto report = report_of(hosts);
    change(report);
    text += "\n# " + title + "\n" + problems(report);
  };
  add("one direction cannot connect", 2, [](auto& report) { report.pairs[0].connect_errno = ETIMEDOUT; });
  add("both cannot", 2, [](auto& report) {
    for (PeerPair& pair : report.pairs) pair.connect_errno = EHOSTUNREACH;
  });
  add("a host's own error is one finding, not one per pair", 3, [](auto& report) {
    report.hosts[1].error = "no interface";
    for (PeerPair& pair : report.pairs) {
      if (pair.from == 1 || pair.to == 1) pair.error = "node1: no interface";
    }
  });
  add("large packets are lost", 2, [](auto& report) { report.pairs[0].loses_large = true; });
  add("a test broke off", 2, [](auto& report) { report.pairs[0].error = "Connection reset by peer"; });
  add("MTUs and versions differ", 3, [](auto& report) {
    report.hosts[2].mtu = 9000;
    report.hosts[1].version = "0.2.0";
  });
  add("all ranks are on one host", 1, [](auto&) {});
  auto report = report_of(2);
  report.hosts[0].name = report.hosts[1].name = "pod";
  report.pairs[1].connect_errno = ECONNREFUSED;
  report.pairs[1].round_trip_s.reset();
  CHECK(judge_peers(report)[0].name == "pod[0]");
  CHECK(judge_peers(report)[1].name == "pod[2]");
  testing::check_golden("tools/doctor/peers.txt", text + "\n# the table\n" + peers_text(report));
  const auto json = peers_json(report, judge_peers(report));
  CHECK(json["hosts"].size() == 2);
  CHECK(json["pairs"][0]["round_trip_s"] == 50e-6);
  CHECK(json["pairs"][1]["round_trip_s"].is_null());
}

TEST_CASE("values that no network gives do no harm") {
  auto report = report_of(3);
  for (const double odd : {std::numeric_limits<double>::infinity(), -1.0, 1e308, 5e-324}) {
    for (PeerPair& pair : report.pairs) pair.round_trip_s = odd;
    for (PeerHost& host : report.hosts) host.mtu = 0;
    judge_peers(report);
    CHECK_FALSE(peers_text(report).empty());
  }
  CHECK(problems(PeersReport{}).empty());
  CHECK(peers_text(PeersReport{}).empty());
}
