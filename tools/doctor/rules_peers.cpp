// Rules about the network between hosts, and its table.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "cli/console/table.hpp"
#include "tools/doctor/peers.hpp"

namespace ddprun::doctor {
namespace {

// Names of the hosts; with their ranks where a name is not unique, as in containers.
std::vector<std::string> names_of(const std::vector<PeerHost>& hosts) {
  std::vector<std::string> names;
  for (const PeerHost& host : hosts) {
    const bool unique = !host.name.empty() && std::ranges::count(hosts, host.name, &PeerHost::name) == 1;
    names.push_back(unique ? host.name : fmt::format("{}[{}]", host.name, host.rank));
  }
  return names;
}

using Names = std::vector<std::string>;

void judge_hosts(const std::vector<PeerHost>& hosts, const Names& names, Findings& findings) {
  std::set<std::string> versions;
  std::set<int64_t> mtus;
  Names mtu_texts;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const PeerHost& host = hosts[i];
    findings.judge(names[i], fmt::format("rank {}, {} {}, MTU {}", host.rank, host.interface, host.address, host.mtu),
                   {{!host.error.empty(), State::error,
                     "run ddprun doctor on this host, and name an interface of it with --interface, or another --port",
                     host.error}});
    if (!host.version.empty()) versions.insert(host.version);
    if (host.mtu > 0 && mtus.insert(host.mtu).second) mtu_texts.push_back(fmt::format("{} has {}", names[i], host.mtu));
  }
  findings.judge("ddprun", std::nullopt,
                 {{versions.size() > 1, State::error,
                   "install the same version on all hosts: ranks with different versions refuse to meet",
                   fmt::format("versions differ: {}", fmt::join(versions, ", "))}});
  findings.judge("MTU", std::nullopt,
                 {{mtus.size() > 1, State::warning,
                   fmt::format("set the same MTU on all hosts, and one that the switches between them forward: ip link "
                               "set INTERFACE mtu {}",
                               mtus.empty() ? 0 : *mtus.begin()),
                   fmt::format("{}", fmt::join(mtu_texts, ", "))}});
}

void judge_pair(const PeerPair& pair, const PeersReport& report, const Names& names, Findings& findings) {
  const PeerHost &from = report.hosts[pair.from], &to = report.hosts[pair.to];
  if (!from.error.empty() || !to.error.empty()) return;  // judge_hosts() has reported it
  const auto back = std::ranges::find_if(
      report.pairs, [&](const PeerPair& other) { return other.from == pair.to && other.to == pair.from; });
  const bool returns = back != report.pairs.end() && back->connect_errno == 0 && back->error.empty();
  findings.judge(
      names[pair.from] + " -> " + names[pair.to], std::nullopt,
      {{pair.connect_errno != 0, State::error,
        fmt::format("a firewall, or an address of another network: backends use any port between the hosts, so open "
                    "all in the firewall of {}, or name an interface that all hosts reach with --interface; --port N "
                    "tests one port",
                    names[pair.to]),
        fmt::format("cannot connect to {} port {}: {}{}", to.address, to.port, std::strerror(pair.connect_errno),
                    returns ? "; the other direction connects" : "")},
       {!pair.error.empty(), State::error,
        "run the test again; if it stays, check the log of the firewall and of the interface on both hosts",
        "connected, then: " + pair.error},
       {pair.loses_large, State::error,
        "packets of full size are lost: set an MTU on both hosts that every switch and tunnel between them forwards "
        "(ip link set INTERFACE mtu 1400), and let ICMP through",
        "small messages arrive, large ones do not"}});
}

std::string end_of(const PeerHost& host) {
  return fmt::format("{} (rank {})", host.name, host.rank);
}

std::string connection(const PeerPair& pair) {
  if (pair.connect_errno != 0) return std::strerror(pair.connect_errno);
  return pair.error.empty() ? "ok" : pair.error;
}

}  // namespace

std::vector<Finding> judge_peers(const PeersReport& report) {
  const Names names = names_of(report.hosts);
  Findings findings;
  findings.begin("peers");
  judge_hosts(report.hosts, names, findings);
  for (const PeerPair& pair : report.pairs) judge_pair(pair, report, names, findings);
  findings.judge("hosts", std::nullopt,
                 {{names.size() == 1, State::note,
                   "start at least one rank on each of several hosts to test the network between them",
                   "all ranks are on " + (names.empty() ? "" : names[0])}});
  return findings.list();
}

std::string peers_text(const PeersReport& report) {
  if (report.pairs.empty()) return "";
  console::Table table(console::Table::columns(
      {"from", "to", "interface", "address", "port", "round trip", "connection"}, {"port", "round trip"}));
  for (const PeerPair& pair : report.pairs) {
    const PeerHost& to = report.hosts[pair.to];
    table.row({end_of(report.hosts[pair.from]), end_of(to), pair.interface.empty() ? "-" : pair.interface, to.address,
               std::to_string(to.port), pair.round_trip_s ? console::human_time(*pair.round_trip_s) : "-",
               connection(pair)});
  }
  return table.printed();
}

}  // namespace ddprun::doctor
