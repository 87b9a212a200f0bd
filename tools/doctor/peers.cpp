#include "tools/doctor/peers.hpp"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/version.hpp"
#include "ddprun/error.hpp"
#include "ddprun/plugin/host_identity.hpp"
#include "tools/doctor/collect.hpp"
#include "tools/doctor/files.hpp"
#include "tools/doctor/judge.hpp"
#include "tools/doctor/peer_link.hpp"
#include "tools/doctor/peers_json.hpp"

namespace ddprun::doctor {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

std::string dump(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// The host of a rank that tests.
class Tester {
 public:
  Tester(Store& store, const PeersOptions& options, std::vector<int> ranks, std::size_t here)
      : store_(store), options_(options), ranks_(std::move(ranks)), here_(here) {}

  PeersReport run(const std::string& token) {
    interfaces_ = interfaces("");
    PeerHost self = describe_host();
    std::unique_ptr<PeerServer> server;
    if (self.error.empty()) server = start_server(self, token);
    store_.set(key("address", here_), dump(to_json(self)));
    report_.hosts = gather_hosts();
    auto results = nlohmann::ordered_json::array();
    for (std::size_t round = 0; round < rounds_of(ranks_.size()); ++round) {
      const auto partner = partner_of(here_, round, ranks_.size());
      if (partner) results.push_back(to_json(test(*partner, round, token)));
    }
    store_.set(key("result", here_), dump(results));
    if (here_ == 0) gather_results();
    return std::move(report_);
  }

 private:
  static std::string key(const std::string& what, std::size_t host) {
    return "peers/" + what + "/" + std::to_string(host);
  }

  // Both tests of a pair, and some time for a busy host.
  milliseconds turn() const { return 2 * (3 * options_.connect_limit + 2 * options_.duration) + milliseconds(2000); }
  // A host may be delayed by earlier turns in which its partners did not answer.
  milliseconds patience(std::size_t round) const { return options_.timeout + turn() * static_cast<int64_t>(round + 1); }

  PeerHost describe_host() const {
    PeerHost self;
    self.rank = ranks_[here_];
    self.name = hostname();
    self.version = version();
    try {
      const Interface chosen = choose_interface(interfaces_, options_.interface, variables(environ), options_.address);
      self.interface = chosen.name;
      self.address = chosen.addresses.front();
      self.mtu = chosen.mtu;
    } catch (const Error& error) {
      self.error = error.what();
    }
    return self;
  }

  std::unique_ptr<PeerServer> start_server(PeerHost& self, const std::string& token) const try {
    auto server = std::make_unique<PeerServer>(self.address, options_.port, token);
    self.port = server->port();
    return server;
  } catch (const Error& error) {
    self.error = error.what();
    return nullptr;
  }

  std::vector<PeerHost> gather_hosts() {
    std::vector<PeerHost> hosts;
    for (std::size_t host = 0; host < ranks_.size(); ++host) {
      PeerHost& one = hosts.emplace_back();
      one.rank = ranks_[host];
      try {
        one = host_from(json::parse(store_.get(key("address", host), options_.timeout)));
      } catch (const Error& error) {
        if (error.code() != ExitCode::rendezvous) throw;
        one.error = std::string("no address: ") + error.what();
      }
    }
    return hosts;
  }

  // True if the other host has set the key in time.
  bool meet(const std::string& what, std::size_t host, std::size_t round) try {
    store_.get(key(what + std::to_string(round), host), patience(round));
    return true;
  } catch (const Error& error) {
    if (error.code() != ExitCode::rendezvous) throw;
    return false;
  }

  void announce(const std::string& what, std::size_t round) {
    store_.set(key(what + std::to_string(round), here_), "");
  }

  // Hosts with an error are left out, so that nobody waits for them.
  PeerPair test(std::size_t other, std::size_t round, const std::string& token) {
    PeerPair pair = without_error(other) && without_error(here_) ? test_in_turn(other, round, token) : PeerPair{};
    for (const std::size_t host : {here_, other}) {
      if (!without_error(host)) pair.error = report_.hosts[host].name + ": " + report_.hosts[host].error;
    }
    pair.from = here_;
    pair.to = other;
    return pair;
  }

  bool without_error(std::size_t host) const { return report_.hosts[host].error.empty(); }

  // The first host of a pair measures first, so that the two directions do not share the link.
  PeerPair test_in_turn(std::size_t other, std::size_t round, const std::string& token) {
    PeerPair pair;
    announce("ready", round);
    if (meet("ready", other, round) && (here_ < other || meet("done", other, round))) {
      pair = measure(report_.hosts[other], token, options_);
      pair.interface = interface_of(pair.address);
    } else {
      pair.error = "the other host did not take part";
    }
    announce("done", round);
    if (here_ < other) meet("done", other, round);
    return pair;
  }

  std::string interface_of(const std::string& address) const {
    for (const Interface& interface : interfaces_) {
      const auto& all = interface.addresses;
      if (std::find(all.begin(), all.end(), address) != all.end()) return interface.name;
    }
    return "";
  }

  void gather_results() {
    for (std::size_t host = 0; host < ranks_.size(); ++host) {
      if (!without_error(host)) continue;  // it has tested nothing
      try {
        const auto text = store_.get(key("result", host), patience(rounds_of(ranks_.size())));
        for (const json& one : json::parse(text)) report_.pairs.push_back(pair_from(one));
      } catch (const Error& error) {
        report_.hosts[host].error = std::string("no result: ") + error.what();
      }
    }
  }

  Store& store_;
  const PeersOptions& options_;
  const std::vector<int> ranks_;  // the one of each host that tests
  const std::size_t here_;
  std::vector<Interface> interfaces_;
  PeersReport report_;
};

}  // namespace

// The circle method: host n - 1 stays, the others rotate. With an odd number of hosts, one pauses.
std::size_t rounds_of(std::size_t hosts) {
  return hosts < 2 ? 0 : hosts + hosts % 2 - 1;
}

std::optional<std::size_t> partner_of(std::size_t host, std::size_t round, std::size_t hosts) {
  const std::size_t rounds = rounds_of(hosts);
  const std::size_t last = rounds;  // the one that stays; with an odd number of hosts, none
  std::size_t partner = 0;
  if (host == last) {
    // The one whose partner would be itself: 2 partner = round, modulo the odd number of rounds.
    partner = round % 2 == 0 ? round / 2 : (round + rounds) / 2;
  } else {
    partner = (round + rounds - host) % rounds;
    if (partner == host) partner = last;
  }
  return partner < hosts ? std::optional(partner) : std::nullopt;
}

Interface choose_interface(const std::vector<Interface>& interfaces, const std::string& named,
                           const std::vector<std::pair<std::string, std::string>>& variables,
                           const std::string& address) {
  const auto usable = [&](const std::string& name) -> std::optional<Interface> {
    for (const Interface& one : interfaces) {
      if (one.name == name && one.up && !one.addresses.empty()) return one;
    }
    return std::nullopt;
  };
  if (!named.empty()) {
    if (const auto found = usable(named)) return *found;
    std::vector<std::string> names;
    for (const Interface& one : interfaces) {
      if (usable(one.name)) names.push_back(one.name);
    }
    throw Error(ExitCode::usage, "--interface " + named + ": this host has no such interface that is up and has an " +
                                     "address; it has " + joined(names));
  }
  for (const auto& [name, value] : variables) {
    if (name != "GLOO_SOCKET_IFNAME" && name != "NCCL_SOCKET_IFNAME") continue;
    const std::string first = value.substr(0, value.find(','));
    if (const auto found = usable(first.starts_with('=') ? first.substr(1) : first)) return *found;
  }
  for (const Interface& one : interfaces) {
    const auto& all = one.addresses;
    const bool leads = std::find(all.begin(), all.end(), address) != all.end();
    if (leads && one.up && !one.loopback) return one;
  }
  const Interface* main = main_interface(interfaces);
  if (main == nullptr) throw Error(ExitCode::failure, "no interface but loopback is up with an address");
  return *main;
}

PeersReport test_peers(Store& store, int rank, int size, const PeersOptions& options) {
  std::string here = options.host.empty() ? network_identity() : options.host;
  if (here.empty()) here = "rank " + std::to_string(rank);
  const auto hosts = store.allgather("peers/host", rank, size, here, options.timeout);
  std::vector<int> first;  // ranks
  for (int one = 0; one < size; ++one) {
    if (std::find(hosts.begin(), hosts.begin() + one, hosts[one]) == hosts.begin() + one) first.push_back(one);
  }
  const auto place = std::find(first.begin(), first.end(), rank);
  if (rank == 0) store.set("peers/token", random_token());
  PeersReport report;
  if (place != first.end()) {
    Tester tester(store, options, first, static_cast<std::size_t>(place - first.begin()));
    report = tester.run(store.get("peers/token", options.timeout));
  }
  return report;
}

}  // namespace ddprun::doctor
