#include "tools/doctor/peers.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/version.hpp"
#include "ddprun/error.hpp"
#include "ddprun/plugin/host_identity.hpp"
#include "launch/net/address.hpp"
#include "tools/doctor/rules.hpp"

namespace nlohmann {
template <class Value>
struct adl_serializer<std::optional<Value>> {
  static void to_json(json& to, const std::optional<Value>& from) { to = from ? json(*from) : json(); }
  static void from_json(const json& from, std::optional<Value>& to) {
    if (!from.is_null()) to = from.get<Value>();
  }
};
}  // namespace nlohmann

namespace ddprun::doctor {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PeerHost, rank, name, interface, address, mtu, port, version, error)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PeerPair, from, to, interface, address, connect_errno, error, round_trip_s,
                                   bandwidth_bytes_per_s, clock_ahead_s)

namespace {

using nlohmann::json;
using std::chrono::milliseconds;

// The host of a rank that tests.
class Tester {
 public:
  Tester(Store& store, const PeersOptions& options, std::vector<int> ranks, std::size_t here)
      : store_(store), options_(options), ranks_(std::move(ranks)), here_(here) {}

  PeersReport run(const std::string& token) {
    token_ = token;
    interfaces_ = interfaces("");
    const PeerHost self = start();
    store_.set(key("address", here_), text_of(self));
    gather_hosts();
    std::vector<PeerPair> results;
    for (std::size_t round = 0; round < rounds_of(ranks_.size()); ++round) {
      if (const auto partner = partner_of(here_, round, ranks_.size())) results.push_back(test(*partner, round));
    }
    store_.set(key("result", here_), text_of(results));
    if (here_ == 0) gather_results();
    return std::move(report_);
  }

 private:
  static std::string text_of(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }
  static std::string key(const std::string& what, std::size_t host) {
    return "peers/" + what + "/" + std::to_string(host);
  }

  // Both tests of a pair, and some time for a busy host.
  milliseconds turn() const { return 2 * (3 * options_.connect_limit + 2 * options_.duration) + milliseconds(2000); }
  // A host may be delayed by earlier turns in which its partners did not answer.
  milliseconds patience(std::size_t round) const { return options_.timeout + turn() * static_cast<int64_t>(round + 1); }

  // Begins to listen, and describes this host.
  PeerHost start() {
    PeerHost self;
    self.rank = ranks_[here_];
    self.name = launch::host_name();
    self.version = version();
    try {
      const Interface chosen = choose_interface(interfaces_, options_.interface, variables(environ), options_.address);
      self.interface = chosen.name;
      self.address = chosen.addresses.front();
      self.mtu = chosen.mtu;
      listener_ = std::make_unique<PeerListener>(self.address, options_.port);
      self.port = listener_->port();
    } catch (const Error& error) {
      self.error = error.what();
    }
    return self;
  }

  void gather_hosts() {
    for (std::size_t host = 0; host < ranks_.size(); ++host) {
      PeerHost& one = report_.hosts.emplace_back();
      if (const auto text = store_.get(key("address", host), options_.timeout)) {
        one = json::parse(*text);
      } else {
        one.rank = ranks_[host];
        one.error = "no address within " + std::to_string(options_.timeout.count()) + " ms";
      }
    }
  }

  // Hosts with an error are left out, so that nobody waits for them.
  PeerPair test(std::size_t other, std::size_t round) {
    PeerPair pair = without_error(other) && without_error(here_) ? test_in_turn(other, round) : PeerPair{};
    for (const std::size_t host : {here_, other}) {
      if (!without_error(host)) pair.error = report_.hosts[host].name + ": " + report_.hosts[host].error;
    }
    pair.from = here_;
    pair.to = other;
    return pair;
  }

  bool without_error(std::size_t host) const { return report_.hosts[host].error.empty(); }

  // The first host of a pair measures first, so that the two directions do not share the link.
  PeerPair test_in_turn(std::size_t other, std::size_t round) {
    const std::string ready = "ready" + std::to_string(round);
    PeerPair pair;
    store_.set(key(ready, here_), "");
    if (!store_.get(key(ready, other), patience(round))) {
      pair.error = "the other host did not take part";
      return pair;
    }
    const milliseconds first = options_.connect_limit + milliseconds(1000);
    if (here_ > other) listener_->serve(ticket(other), first);
    pair = measure(report_.hosts[other], ticket(here_), options_);
    if (here_ < other) listener_->serve(ticket(other), 2 * first);
    for (const Interface& interface : interfaces_) {
      const auto& all = interface.addresses;
      if (std::find(all.begin(), all.end(), pair.address) != all.end()) pair.interface = interface.name;
    }
    return pair;
  }

  // Of the client: one that came too late for its turn must not be taken for the next one.
  std::string ticket(std::size_t client) const { return token_ + " " + std::to_string(client + 1'000'000); }

  void gather_results() {
    for (std::size_t host = 0; host < ranks_.size(); ++host) {
      if (!without_error(host)) continue;  // it has tested nothing
      try {
        const auto text = store_.require(key("result", host), patience(rounds_of(ranks_.size())));
        for (const json& one : json::parse(text)) report_.pairs.push_back(one);
      } catch (const Error& error) {
        report_.hosts[host].error = std::string("no result: ") + error.what();
      }
    }
  }

  Store& store_;
  const PeersOptions& options_;
  const std::vector<int> ranks_;  // the one of each host that tests
  const std::size_t here_;
  std::string token_;
  std::vector<Interface> interfaces_;
  std::unique_ptr<PeerListener> listener_;  // null: this host cannot test
  PeersReport report_;
};

}  // namespace

// The circle method: host n - 1 stays, the others rotate. With an odd number of hosts, one pauses.
std::size_t rounds_of(std::size_t hosts) {
  return hosts < 2 ? 0 : hosts + hosts % 2 - 1;
}

std::optional<std::size_t> partner_of(std::size_t host, std::size_t round, std::size_t hosts) {
  const std::size_t rounds = rounds_of(hosts);
  for (std::size_t other = 0; other < hosts; ++other) {
    // The one that stays, which an odd number of hosts does not have, meets the one that would meet itself.
    const std::size_t sum = other == rounds ? 2 * host : host == rounds ? 2 * other : host + other;
    if (other != host && sum % rounds == round) return other;
  }
  return std::nullopt;
}

Interface choose_interface(const std::vector<Interface>& interfaces, const std::string& named,
                           const Variables& variables, const std::string& address) {
  const auto usable = [&](const std::string& name) -> std::optional<Interface> {
    for (const Interface& one : interfaces) {
      if (one.name == name && one.is_up && !one.addresses.empty()) return one;
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
                                     "address; it has " + fmt::format("{}", fmt::join(names, ", ")));
  }
  for (const auto& [name, value] : variables) {
    if (name != "GLOO_SOCKET_IFNAME" && name != "NCCL_SOCKET_IFNAME") continue;
    const std::string first = value.substr(0, value.find(','));
    if (const auto found = usable(first.starts_with('=') ? first.substr(1) : first)) return *found;
  }
  for (const Interface& one : interfaces) {
    const auto& all = one.addresses;
    const bool leads = std::find(all.begin(), all.end(), address) != all.end();
    if (leads && one.is_up && !one.is_loopback) return one;
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
    report = tester.run(store.require("peers/token", options.timeout));
  }
  return report;
}

nlohmann::ordered_json peers_json(const PeersReport& report, const std::vector<Finding>& findings) {
  return {{"hosts", json(report.hosts)}, {"pairs", json(report.pairs)}, {"findings", to_json(findings)}};
}

}  // namespace ddprun::doctor
