#include "tools/doctor/judge_peers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <set>

#include "cli/console/units.hpp"

namespace ddprun::doctor {
namespace {

constexpr double kMuchSlower = 2;  // a factor of bandwidth
constexpr double kClockLimit = 1;  // seconds

std::string rate(double bytes_per_second) {
  return fmt::format("{:.3g} Gbit/s", bytes_per_second * 8e-9);
}

// Names of the hosts; with their ranks where a name is not unique, as in containers.
std::vector<std::string> names_of(const std::vector<PeerHost>& hosts) {
  std::vector<std::string> names;
  for (const PeerHost& host : hosts) {
    const auto same =
        std::count_if(hosts.begin(), hosts.end(), [&](const PeerHost& other) { return other.name == host.name; });
    const bool unique = same == 1 && !host.name.empty();
    names.push_back(unique ? host.name : host.name + "[" + std::to_string(host.rank) + "]");
  }
  return names;
}

class Judge {
 public:
  explicit Judge(const PeersReport& report) : report_(report), names_(names_of(report.hosts)) {}

  std::vector<Finding> run() {
    for (std::size_t i = 0; i < report_.hosts.size(); ++i) judge_host(i);
    judge_versions();
    judge_mtus();
    for (const PeerPair& pair : report_.pairs) judge_pair(pair);
    judge_clocks();
    if (report_.hosts.size() == 1) {
      findings_.add(State::note, "hosts", "all ranks are on " + names_[0],
                    "start at least one rank on each of several hosts to test the network between them");
    }
    return std::move(findings_).list();
  }

 private:
  void judge_host(std::size_t index) {
    const PeerHost& host = report_.hosts[index];
    if (host.error.empty()) {
      findings_.ok(names_[index],
                   fmt::format("rank {}, {} {}, MTU {}", host.rank, host.interface, host.address, host.mtu));
    } else {
      findings_.add(State::error, names_[index], host.error,
                    "run ddprun doctor on this host, and name an interface of it with --interface, or another --port");
    }
  }

  void judge_versions() {
    std::set<std::string> versions;
    for (const PeerHost& host : report_.hosts) {
      if (!host.version.empty()) versions.insert(host.version);
    }
    if (versions.size() < 2) return;
    findings_.add(State::error, "ddprun", "versions differ: " + fmt::format("{}", fmt::join(versions, ", ")),
                  "install the same version on all hosts: ranks with different versions refuse to meet");
  }

  void judge_mtus() {
    std::set<int64_t> mtus;
    std::string value;
    for (std::size_t i = 0; i < report_.hosts.size(); ++i) {
      const PeerHost& host = report_.hosts[i];
      if (host.mtu <= 0 || !mtus.insert(host.mtu).second) continue;
      value += fmt::format("{}{} has {}", value.empty() ? "" : ", ", names_[i], host.mtu);
    }
    if (mtus.size() < 2) return;
    findings_.add(State::warning, "MTU", value,
                  fmt::format("set the same MTU on all hosts, and one that the switches between them forward: ip link "
                              "set INTERFACE mtu {}",
                              *mtus.begin()));
  }

  const PeerPair* reverse(const PeerPair& pair) const {
    for (const PeerPair& other : report_.pairs) {
      if (other.from == pair.to && other.to == pair.from) return &other;
    }
    return nullptr;
  }

  // Of the bandwidths between all hosts.
  double median() const {
    std::vector<double> all;
    for (const PeerPair& pair : report_.pairs) {
      if (pair.bandwidth) all.push_back(*pair.bandwidth);
    }
    if (all.empty()) return 0;
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
    return all[all.size() / 2];
  }

  void judge_pair(const PeerPair& pair) {
    const std::string name = names_[pair.from] + " -> " + names_[pair.to];
    const PeerHost& to = report_.hosts[pair.to];
    if (!report_.hosts[pair.from].error.empty() || !to.error.empty()) return;  // judge_host() has reported it
    if (pair.connect_errno != 0) {
      const PeerPair* back = reverse(pair);
      const bool one_way = back != nullptr && back->connect_errno == 0 && back->error.empty();
      findings_.add(State::error, name, connect_error(pair) + (one_way ? "; the other direction connects" : ""),
                    connect_advice(pair, names_[pair.to]));
    } else if (!pair.error.empty()) {
      findings_.add(
          State::error, name, "connected, then: " + pair.error,
          "run the test again; if it stays, check the log of the firewall and of the interface on both hosts");
    } else if (pair.bandwidth && *pair.bandwidth <= 0) {
      findings_.add(State::error, name, "small messages arrive, large ones do not",
                    "packets of full size are lost: set an MTU on both hosts that every switch and tunnel between them "
                    "forwards (ip link set INTERFACE mtu 1400), and let ICMP through");
    } else {
      judge_speed(name, pair);
    }
  }

  std::string connect_error(const PeerPair& pair) const {
    const PeerHost& to = report_.hosts[pair.to];
    return fmt::format("cannot connect to {} port {}: {}", to.address, to.port, std::strerror(pair.connect_errno));
  }

  static std::string connect_advice(const PeerPair& pair, const std::string& to) {
    switch (pair.connect_errno) {
      case ENETUNREACH:
      case EHOSTUNREACH:
      case EADDRNOTAVAIL:
        return "there is no route, or a firewall refuses: name an interface that all hosts reach with --interface, and "
               "open the ports between the hosts in the firewall of " +
               to;
      default:
        return "a firewall blocks the port, or the address is of another network: backends use any port between the "
               "hosts, so open all in the firewall of " +
               to + ", or name another interface with --interface; --port N tests one port";
    }
  }

  void judge_speed(const std::string& name, const PeerPair& pair) {
    const PeerPair* back = reverse(pair);
    const double most = median();
    if (!pair.bandwidth) return;
    if (back != nullptr && back->bandwidth && *pair.bandwidth * kMuchSlower < *back->bandwidth) {
      findings_.add(State::warning, name, rate(*pair.bandwidth) + ", the other direction " + rate(*back->bandwidth),
                    "a ring is as fast as its slowest direction: check cable, duplex (ethtool) and errors (ip -s link) "
                    "of both hosts, and other traffic");
    } else if (report_.hosts.size() > 2 && *pair.bandwidth * kMuchSlower < most) {
      findings_.add(State::warning, name, rate(*pair.bandwidth) + ", the median of all pairs " + rate(most),
                    "a ring is as fast as its slowest pair: check speed (ethtool) and errors (ip -s link) of both "
                    "hosts, and other traffic");
    }
    const int64_t least = std::min(report_.hosts[pair.from].mtu, report_.hosts[pair.to].mtu);
    if (pair.path_mtu && *pair.path_mtu < least && pair.interface != "lo") {
      findings_.add(State::warning, name, fmt::format("path MTU {}, interfaces {}", *pair.path_mtu, least),
                    fmt::format("a router or tunnel between the hosts has a smaller MTU: raise it there, or set {} on "
                                "both interfaces",
                                *pair.path_mtu));
    }
  }

  // One finding per host, against the first that measured it.
  void judge_clocks() {
    std::set<std::size_t> judged;
    for (const PeerPair& pair : report_.pairs) {
      if (pair.from > pair.to || !pair.clock_ahead || !judged.insert(pair.to).second) continue;
      if (std::abs(*pair.clock_ahead) <= kClockLimit) continue;
      findings_.add(State::warning, "clock of " + names_[pair.to],
                    console::human_time(std::abs(*pair.clock_ahead)) +
                        (*pair.clock_ahead > 0 ? " ahead of" : " behind") + " that of " + names_[pair.from],
                    "set the clocks with NTP (chronyc makestep, timedatectl set-ntp true): times in logs do not match, "
                    "and certificates or checkpoints may look older than they are");
    }
  }

  const PeersReport& report_;
  const std::vector<std::string> names_;
  Findings findings_{"peers"};
};

}  // namespace

std::vector<Finding> judge_peers(const PeersReport& report) {
  return Judge(report).run();
}

}  // namespace ddprun::doctor
