// Rules about the network between hosts, and its table.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <set>

#include "cli/console/table.hpp"
#include "cli/console/units.hpp"
#include "tools/doctor/peers.hpp"
#include "tools/lib/statistics.hpp"

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
  explicit Judge(const PeersReport& report) : report_(report), names_(names_of(report.hosts)) {
    std::vector<double> all;
    for (const PeerPair& pair : report_.pairs) {
      if (pair.bandwidth_bytes_per_s) all.push_back(*pair.bandwidth_bytes_per_s);
    }
    median_ = tools::median(std::move(all));
  }

  std::vector<Finding> run() {
    judge_hosts();
    for (const PeerPair& pair : report_.pairs) judge_pair(pair);
    judge_clocks();
    findings_.judge_only("hosts", {report_.hosts.size() == 1, State::note,
                                   "start at least one rank on each of several hosts to test the network between them",
                                   report_.hosts.size() == 1 ? "all ranks are on " + names_[0] : ""});
    return findings_.list();
  }

 private:
  void judge_hosts() {
    std::set<std::string> versions;
    std::set<int64_t> mtus;
    std::string mtus_text;
    for (std::size_t i = 0; i < report_.hosts.size(); ++i) {
      const PeerHost& host = report_.hosts[i];
      findings_.judge(
          names_[i], fmt::format("rank {}, {} {}, MTU {}", host.rank, host.interface, host.address, host.mtu),
          {{!host.error.empty(), State::error,
            "run ddprun doctor on this host, and name an interface of it with --interface, or another --port",
            host.error}});
      if (!host.version.empty()) versions.insert(host.version);
      if (host.mtu <= 0 || !mtus.insert(host.mtu).second) continue;
      mtus_text += fmt::format("{}{} has {}", mtus_text.empty() ? "" : ", ", names_[i], host.mtu);
    }
    findings_.judge_only("ddprun",
                         {versions.size() > 1, State::error,
                          "install the same version on all hosts: ranks with different versions refuse to meet",
                          fmt::format("versions differ: {}", fmt::join(versions, ", "))});
    findings_.judge_only(
        "MTU",
        {mtus.size() > 1, State::warning,
         fmt::format("set the same MTU on all hosts, and one that the switches between them forward: ip link set "
                     "INTERFACE mtu {}",
                     mtus.empty() ? 0 : *mtus.begin()),
         mtus_text});
  }

  const PeerPair* reverse(const PeerPair& pair) const {
    const auto found = std::find_if(report_.pairs.begin(), report_.pairs.end(), [&](const PeerPair& other) {
      return other.from == pair.to && other.to == pair.from;
    });
    return found == report_.pairs.end() ? nullptr : &*found;
  }

  void judge_pair(const PeerPair& pair) {
    const PeerHost &from = report_.hosts[pair.from], &to = report_.hosts[pair.to];
    if (!from.error.empty() || !to.error.empty()) return;  // judge_hosts() has reported it
    const std::string name = names_[pair.from] + " -> " + names_[pair.to];
    const PeerPair* back = reverse(pair);
    const bool returns = back != nullptr && back->connect_errno == 0 && back->error.empty();
    const std::string refused =
        fmt::format("cannot connect to {} port {}: {}{}", to.address, to.port, std::strerror(pair.connect_errno),
                    returns ? "; the other direction connects" : "");
    const auto& bandwidth = pair.bandwidth_bytes_per_s;
    const double speed = bandwidth.value_or(0);
    const double other = returns ? back->bandwidth_bytes_per_s.value_or(0) : 0;
    for (const Rule& rule :
         {Rule{pair.connect_errno != 0, State::error,
               "a firewall, or an address of another network: backends use any port between the hosts, so open all in "
               "the firewall of " +
                   names_[pair.to] +
                   ", or name an interface that all hosts reach with --interface; "
                   "--port N tests one port",
               refused},
          Rule{!pair.error.empty(), State::error,
               "run the test again; if it stays, check the log of the firewall and of the interface on both hosts",
               "connected, then: " + pair.error},
          Rule{bandwidth && speed <= 0, State::error,
               "packets of full size are lost: set an MTU on both hosts that every switch and tunnel between them "
               "forwards (ip link set INTERFACE mtu 1400), and let ICMP through",
               "small messages arrive, large ones do not"}}) {
      findings_.judge_only(name, rule);
      if (rule.applies) return;
    }
    if (!bandwidth) return;
    if (speed * kMuchSlower < other) {
      findings_.judge_only(name,
                           {true, State::warning,
                            "a ring is as fast as its slowest direction: check cable, duplex (ethtool) and errors "
                            "(ip -s link) of both hosts, and other traffic",
                            rate(speed) + ", the other direction " + rate(other)});
    } else if (report_.hosts.size() > 2 && speed * kMuchSlower < median_) {
      findings_.judge_only(name,
                           {true, State::warning,
                            "a ring is as fast as its slowest pair: check speed (ethtool) and errors (ip -s link) "
                            "of both hosts, and other traffic",
                            rate(speed) + ", the median of all pairs " + rate(median_)});
    }
  }

  // One finding per host, against the first that measured it.
  void judge_clocks() {
    std::set<std::size_t> judged;
    for (const PeerPair& pair : report_.pairs) {
      if (pair.from > pair.to || !pair.clock_ahead_s || !judged.insert(pair.to).second) continue;
      const double ahead = *pair.clock_ahead_s;
      findings_.judge_only(
          "clock of " + names_[pair.to],
          {std::abs(ahead) > kClockLimit, State::warning,
           "set the clocks with NTP (chronyc makestep, timedatectl set-ntp true): times in logs do not match, and "
           "certificates or checkpoints may look older than they are",
           console::human_time(std::abs(ahead)) + (ahead > 0 ? " ahead of" : " behind") + " that of " +
               names_[pair.from]});
    }
  }

  const PeersReport& report_;
  const std::vector<std::string> names_;
  double median_;  // of the bandwidths between all hosts; NaN: none
  Findings findings_{"peers"};
};

std::string end_of(const PeerHost& host) {
  return fmt::format("{} (rank {})", host.name, host.rank);
}

std::string connection(const PeerPair& pair) {
  if (pair.connect_errno != 0) return std::strerror(pair.connect_errno);
  return pair.error.empty() ? "ok" : pair.error;
}

}  // namespace

std::vector<Finding> judge_peers(const PeersReport& report) {
  return Judge(report).run();
}

std::string peers_text(const PeersReport& report) {
  if (report.pairs.empty()) return "";
  using console::Align;
  console::Table table({{"from"},
                        {"to"},
                        {"interface"},
                        {"address"},
                        {"port", Align::right},
                        {"round trip", Align::right},
                        {"Gbit/s", Align::right},
                        {"connection"}});
  for (const PeerPair& pair : report.pairs) {
    const PeerHost& to = report.hosts[pair.to];
    table.row({end_of(report.hosts[pair.from]), end_of(to), pair.interface.empty() ? "-" : pair.interface, to.address,
               std::to_string(to.port), pair.round_trip_s ? console::human_time(*pair.round_trip_s) : "-",
               pair.bandwidth_bytes_per_s ? fmt::format("{:.3g}", *pair.bandwidth_bytes_per_s * 8e-9) : "-",
               connection(pair)});
  }
  return table.printed();
}

}  // namespace ddprun::doctor
