#include "tools/doctor/peers.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ranges>

#include "base/text.hpp"
#include "ddprun/error.hpp"
#include "ddprun/plugin/host.hpp"
#include "launch/net/address.hpp"
#include "launch/net/secret.hpp"
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
                                   loses_large)

namespace {

using nlohmann::json;
using std::chrono::milliseconds;

// The host of a rank that tests.
class Tester {
 public:
  Tester(Store& store, const PeersOptions& options, std::vector<int> ranks, std::size_t here, std::string token)
      : store_(store), options_(options), ranks_(std::move(ranks)), here_(here), token_(std::move(token)) {}

  PeersReport run() {
    const PeerHost self = start();
    store_.set(key("address", here_), text_of(self));
    gather_hosts();
    std::vector<PeerPair> results;
    for (std::size_t round = 0; round < ranks_.size(); ++round) {
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
  milliseconds turn() const { return 6 * options_.connect_limit + milliseconds(2000); }
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
      self.port = listener_.emplace(self.address, options_.port).port();
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
      if (std::ranges::count(interface.addresses, pair.address) > 0) pair.interface = interface.name;
    }
    return pair;
  }

  // Of the client: one that came too late for its turn must not be taken for the next one.
  std::string ticket(std::size_t client) const { return token_ + " " + std::to_string(client + 1'000'000); }

  void gather_results() {
    for (std::size_t host = 0; host < ranks_.size(); ++host) {
      if (!without_error(host)) continue;  // it has tested nothing
      try {
        const auto text = store_.require(key("result", host), patience(ranks_.size()));
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
  const std::string token_;
  const std::vector<Interface> interfaces_ = interfaces("");
  std::optional<PeerListener> listener_;  // none: this host cannot test
  PeersReport report_;
};

}  // namespace

// Two hosts meet in the round of their sum.
std::optional<std::size_t> partner_of(std::size_t host, std::size_t round, std::size_t hosts) {
  const std::size_t other = (round + hosts - host) % hosts;
  return other == host ? std::nullopt : std::optional(other);
}

Interface choose_interface(const std::vector<Interface>& interfaces, const std::string& named,
                           const Variables& variables, const std::string& address) {
  std::vector<Interface> usable;
  std::ranges::copy_if(interfaces, std::back_inserter(usable),
                       [](const Interface& one) { return one.is_up && !one.addresses.empty(); });
  std::vector<std::string> names;
  if (!named.empty()) names.push_back(named);
  for (const auto& [name, value] : variables) {
    if (!named.empty() || (name != "GLOO_SOCKET_IFNAME" && name != "NCCL_SOCKET_IFNAME")) continue;
    names.push_back(value.substr(value.starts_with('='), value.find(',') - value.starts_with('=')));
  }
  for (const std::string& name : names) {
    if (const auto one = std::ranges::find(usable, name, &Interface::name); one != usable.end()) return *one;
  }
  if (!named.empty()) {
    throw Error(ExitCode::usage,
                fmt::format("--interface {}: this host has no such interface that is up and has an address; it has {}",
                            named, fmt::join(usable | std::views::transform(&Interface::name), ", ")));
  }
  for (const Interface& one : usable) {
    if (std::ranges::count(one.addresses, address) > 0 && !one.is_loopback) return one;
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
  if (rank == 0) store.set("peers/token", launch::to_hex(launch::make_secret()));
  const auto place = std::ranges::find(first, rank);
  if (place == first.end()) return {};
  const std::string token = store.require("peers/token", options.timeout);
  return Tester(store, options, first, static_cast<std::size_t>(place - first.begin()), token).run();
}

nlohmann::ordered_json peers_json(const PeersReport& report, const std::vector<Finding>& findings) {
  return {{"hosts", json(report.hosts)}, {"pairs", json(report.pairs)}, {"findings", to_json(findings)}};
}

}  // namespace ddprun::doctor
