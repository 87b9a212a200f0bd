// Rules about interfaces, names, and the variables that name them.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/text.hpp"
#include "launch/net/address.hpp"
#include "tools/doctor/rules.hpp"

namespace ddprun::doctor {
namespace {

constexpr int64_t kSlowLink = 100;  // Mbit/s
constexpr int64_t kSmallestMtu = 1280;

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

bool are_loopback(const std::vector<std::string>& addresses) {
  return !addresses.empty() && std::ranges::all_of(addresses, launch::is_loopback);
}

bool is_usable(const Interface& interface) {
  return interface.is_up && !interface.is_loopback && !interface.addresses.empty();
}

void judge_interface(const Interface& interface, Findings& findings) {
  const std::string addresses = interface.addresses.empty() ? "no address" : joined(interface.addresses);
  const std::string speed = interface.speed ? fmt::format(", {} Mbit/s", *interface.speed) : "";
  const bool usable = is_usable(interface);
  findings.judge(
      interface.name,
      fmt::format("{}, {}, MTU {}{}{}", interface.is_up ? "up" : "down", addresses, interface.mtu, speed,
                  interface.default_route ? ", default route" : ""),
      {{interface.is_loopback && !interface.is_up, State::error,
        "ranks of one host meet over the loopback interface: ip link set " + interface.name + " up"},
       {usable && interface.speed && *interface.speed <= kSlowLink, State::warning,
        "if the ranks of several hosts communicate over it, this speed limits every step: check cable and switch port, "
        "or name a faster interface"},
       {usable && interface.mtu > 0 && interface.mtu < kSmallestMtu, State::warning,
        fmt::format("small packets cost time, and IPv6 needs {}: ip link set {} mtu 1500", kSmallestMtu,
                    interface.name)}});
}

// `main`: as main_interface().
void judge_hostname(const Network& network, const Interface* main, Findings& findings) {
  const Resolved& host = network.host;
  const std::string instead =  // of a name that does not lead here
      main == nullptr ? "give this host an address" : "use the address " + main->addresses.front();
  const bool is_here = std::ranges::any_of(network.interfaces, [&](const Interface& interface) {
    return std::ranges::find_first_of(host.addresses, interface.addresses) != host.addresses.end();
  });
  const std::string name = "\"" + host.name + "\" ", value = name + "resolves to " + joined(host.addresses);
  findings.judge("hostname", value,
                 {{!host.error.empty(), State::warning,
                   "as MASTER_ADDR, " + instead + ", or add the name to DNS or /etc/hosts of all hosts",
                   name + "does not resolve: " + host.error},
                  {are_loopback(host.addresses), State::note,
                   "as MASTER_ADDR, it must resolve to another address on the other hosts; or " + instead},
                  {!is_here, State::warning, "as MASTER_ADDR, " + instead + ", or correct DNS or /etc/hosts",
                   value + ", which no interface of this host has"}});
}

// The names in the list of an interface variable that no interface matches.
std::vector<std::string> unmatched(const std::string& variable, std::string list, const Network& network) {
  if (list.starts_with('^')) return {};  // what it excludes need not be there
  const bool prefixes = variable == "NCCL_SOCKET_IFNAME" && !list.starts_with('=');
  list.erase(0, std::min(list.find_first_not_of('='), list.size()));
  std::vector<std::string> names;
  std::istringstream words(list);
  for (std::string name; std::getline(words, name, ',');) {
    name = name.substr(0, name.find(':'));  // the port of an RDMA device
    const bool known = std::ranges::any_of(network.interfaces, [&](const Interface& one) {
      return prefixes ? one.name.starts_with(name) : one.name == name;
    });
    const bool rdma =
        variable == "UCX_NET_DEVICES" && (name == "all" || std::ranges::count(network.rdma_devices, name) > 0);
    if (!name.empty() && !known && !rdma) names.push_back(name);
  }
  return names;
}

Rule interface_rule(const std::string& name, const std::string& value, const Network& network) {
  const auto missing = unmatched(name, value, network);
  std::vector<std::string> have;
  for (const Interface& interface : network.interfaces) {
    if (interface.is_up) have.push_back(interface.name);
  }
  if (name == "UCX_NET_DEVICES") have.insert(have.end(), network.rdma_devices.begin(), network.rdma_devices.end());
  return {
      !missing.empty(), State::warning,
      have.empty() ? "unset it; no interface is up" : "set it to one that is up (" + joined(have) + "), or unset it",
      value + ": this host has no interface " + joined(missing)};
}

// None for a variable that can have any value.
std::vector<Rule> rules_of(const std::string& name, const std::string& value, const Facts& facts) {
  const Network& network = facts.network;
  if (name == "GLOO_SOCKET_IFNAME" || name == "NCCL_SOCKET_IFNAME" || name == "UCX_NET_DEVICES") {
    return {interface_rule(name, value, network)};
  }
  if (name == "MASTER_ADDR") {
    const Resolved master = network.master.value_or(Resolved{});
    return {{!master.error.empty(), State::error, "set it to an address of the host of rank 0",
             value + " does not resolve: " + master.error},
            {are_loopback(master.addresses), State::note,
             "this works for ranks of one host; for several hosts, it must be a name of the host of rank 0 that "
             "resolves to another address on the other hosts, or an address of that host",
             value + " resolves to " + joined(master.addresses)}};
  }
  if (name == "MASTER_PORT") {
    const auto port = parse_number<int64_t>(value);
    return {{!port || *port < 1 || *port > 65535, State::error, "set it to a whole number from 1 to 65535"}};
  }
  if (name == "OMP_NUM_THREADS") {
    const int64_t usable = facts.cores.usable;
    const auto threads = parse_number<int64_t>(value.substr(0, value.find(',')));  // a list: one per nesting level
    return {{!threads || *threads < 1, State::warning, "set it to a whole number, or unset it"},
            {usable > 0 && threads > usable, State::warning, "unset it, or set it to the cores of one rank",
             fmt::format("{}, but {} cores are usable", threads.value_or(0), usable)}};
  }
  return {{name == "NCCL_IB_DISABLE" && value == "1" && !network.rdma_devices.empty(), State::warning,
           "unset it, or NCCL uses sockets instead of RDMA",
           value + ", but this host has " + joined(network.rdma_devices)}};
}

}  // namespace

const Interface* main_interface(const std::vector<Interface>& interfaces) {
  const Interface* best = nullptr;
  for (const Interface& one : interfaces) {
    if (is_usable(one) && (best == nullptr || one.default_route > best->default_route)) best = &one;
  }
  return best;
}

void judge_network(const Facts& facts, Findings& findings) {
  const Network& network = facts.network;
  for (const Interface& interface : network.interfaces) judge_interface(interface, findings);
  const Interface* main = main_interface(network.interfaces);
  findings.judge(
      "other hosts", std::nullopt,
      {{main == nullptr, State::warning,
        "ranks of one host need no other; for several hosts, connect an interface, or give the container one (docker "
        "--network host)",
        "no interface but loopback is up with an address"},
       {main != nullptr && !main->default_route, State::note,
        "name the interface that leads to them in comm.options.interface (gloo, nccl) or comm.options.devices (ucx)",
        "no default route"}});
  judge_hostname(network, main, findings);
  if (!network.rdma_devices.empty()) findings.judge("RDMA", joined(network.rdma_devices));
}

void judge_variables(const Facts& facts, Findings& findings) {
  for (const auto& [name, value] : facts.variables) findings.judge(name, value, rules_of(name, value, facts));
  if (facts.variables.empty()) findings.judge("variables", "none that change communication");
}

}  // namespace ddprun::doctor
