// Interfaces, names, and the variables that name them.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "tools/doctor/files.hpp"
#include "tools/doctor/judge.hpp"

namespace ddprun::doctor {
namespace {

constexpr int64_t kSlowLink = 100;  // Mbit/s
constexpr int64_t kSmallestMtu = 1280;

bool is_usable(const Interface& interface) {
  return interface.up && !interface.loopback && !interface.addresses.empty();
}

std::string value_of(const Interface& interface) {
  std::string value = interface.up ? "up" : "down";
  value += ", " + (interface.addresses.empty() ? "no address" : joined(interface.addresses));
  value += fmt::format(", MTU {}", interface.mtu);
  if (interface.speed) value += fmt::format(", {} Mbit/s", *interface.speed);
  if (interface.default_route) value += ", default route";
  return value;
}

void judge_interface(Findings& findings, const Interface& interface) {
  const std::string value = value_of(interface);
  const auto add = [&](State state, const std::string& advice) { findings.add(state, interface.name, value, advice); };
  if (interface.loopback && !interface.up) {
    add(State::error, "ranks of one host meet over the loopback interface: ip link set " + interface.name + " up");
  } else if (is_usable(interface) && interface.speed && *interface.speed <= kSlowLink) {
    add(State::warning,
        "if the ranks of several hosts communicate over it, this speed limits every step: check cable and switch port, "
        "or name a faster interface");
  } else if (is_usable(interface) && interface.mtu < kSmallestMtu) {
    add(State::warning, fmt::format("small packets cost time, and IPv6 needs {}: ip link set {} mtu 1500", kSmallestMtu,
                                    interface.name));
  } else {
    findings.ok(interface.name, value);
  }
}

void judge_mtus(Findings& findings, const std::vector<Interface>& interfaces) {
  const Interface* first = nullptr;
  for (const Interface& interface : interfaces) {
    if (!is_usable(interface)) continue;
    if (first == nullptr) first = &interface;
    if (interface.mtu == first->mtu) continue;
    findings.add(State::note, "MTU",
                 fmt::format("{} has {}, {} has {}", first->name, first->mtu, interface.name, interface.mtu),
                 "name the interface that joins the hosts: comm.options.interface (gloo, nccl), comm.options.devices "
                 "(ucx); its MTU must be equal on all hosts, which ddprun doctor --peers checks");
    return;
  }
}

// What to use instead of a name that does not lead here.
std::string use_address(const std::vector<Interface>& interfaces) {
  const Interface* main = main_interface(interfaces);
  return main == nullptr ? "give this host an address" : "use the address " + main->addresses.front();
}

void judge_hostname(Findings& findings, const Network& network) {
  const Resolved& host = network.host;
  const std::string shown = "\"" + host.name + "\" ";
  const std::string instead = use_address(network.interfaces);
  const auto is_here = [&](const std::string& address) {
    return std::any_of(network.interfaces.begin(), network.interfaces.end(), [&](const Interface& interface) {
      return std::find(interface.addresses.begin(), interface.addresses.end(), address) != interface.addresses.end();
    });
  };
  if (!host.error.empty()) {
    findings.add(State::warning, "hostname", shown + "does not resolve: " + host.error,
                 "as MASTER_ADDR, " + instead + ", or add the name to DNS or /etc/hosts of all hosts");
  } else if (std::all_of(host.addresses.begin(), host.addresses.end(), is_loopback_address)) {
    findings.add(State::note, "hostname", shown + "resolves to " + joined(host.addresses),
                 "as MASTER_ADDR, it must resolve to another address on the other hosts; or " + instead);
  } else if (std::none_of(host.addresses.begin(), host.addresses.end(), is_here)) {
    findings.add(State::warning, "hostname",
                 shown + "resolves to " + joined(host.addresses) + ", which no interface of this host has",
                 "as MASTER_ADDR, " + instead + ", or correct DNS or /etc/hosts");
  } else {
    findings.ok("hostname", shown + "resolves to " + joined(host.addresses));
  }
}

// The names in the list of an interface variable that no interface matches.
std::vector<std::string> unmatched(const std::string& variable, std::string list, const Network& network) {
  const bool prefixes = variable == "NCCL_SOCKET_IFNAME" && !list.starts_with('=') && !list.starts_with("^=");
  const bool excludes = list.starts_with('^');
  list.erase(0, std::min(list.find_first_not_of("^="), list.size()));
  std::vector<std::string> names;
  std::istringstream words(list);
  for (std::string name; std::getline(words, name, ',');) {
    name = name.substr(0, name.find(':'));  // the port of an RDMA device
    const bool known = std::any_of(network.interfaces.begin(), network.interfaces.end(), [&](const Interface& one) {
      return prefixes ? one.name.starts_with(name) : one.name == name;
    });
    const bool rdma = variable == "UCX_NET_DEVICES" &&
                      (name == "all" || std::find(network.rdma_devices.begin(), network.rdma_devices.end(), name) !=
                                            network.rdma_devices.end());
    if (!name.empty() && !known && !rdma && !excludes) names.push_back(name);
  }
  return names;
}

void judge_interface_variable(Findings& findings, const std::string& name, const std::string& value,
                              const Network& network) {
  const auto missing = unmatched(name, value, network);
  std::vector<std::string> have;
  for (const Interface& interface : network.interfaces) {
    if (interface.up) have.push_back(interface.name);
  }
  if (name == "UCX_NET_DEVICES") have.insert(have.end(), network.rdma_devices.begin(), network.rdma_devices.end());
  if (missing.empty()) {
    findings.ok(name, value);
  } else {
    findings.add(
        State::warning, name, value + ": this host has no interface " + joined(missing),
        have.empty() ? "unset it; no interface is up" : "set it to one that is up (" + joined(have) + "), or unset it");
  }
}

void judge_number(Findings& findings, const std::string& name, const std::string& value, int64_t most) {
  const auto number = number_in(value);
  if (number && *number >= 1 && *number <= most) {
    findings.ok(name, value);
  } else {
    findings.add(State::error, name, value, fmt::format("set it to a whole number from 1 to {}", most));
  }
}

void judge_threads(Findings& findings, const std::string& value, const Cores& cores) {
  const auto number = number_in(value.substr(0, value.find(',')));  // a list: one number per nesting level
  if (!number || *number < 1) {
    findings.add(State::warning, "OMP_NUM_THREADS", value, "set it to a whole number, or unset it");
  } else if (cores.usable > 0 && *number > cores.usable) {
    findings.add(State::warning, "OMP_NUM_THREADS", fmt::format("{}, but {} cores are usable", *number, cores.usable),
                 "unset it, or set it to the cores of one rank");
  } else {
    findings.ok("OMP_NUM_THREADS", value);
  }
}

void judge_master(Findings& findings, const std::string& value, const Network& network) {
  const auto& master = network.master;
  if (master && !master->error.empty()) {
    findings.add(State::error, "MASTER_ADDR", value + " does not resolve: " + master->error,
                 "set it to an address of the host of rank 0");
  } else if (master && !master->addresses.empty() &&
             std::all_of(master->addresses.begin(), master->addresses.end(), is_loopback_address)) {
    findings.add(State::note, "MASTER_ADDR", value + " resolves to " + joined(master->addresses),
                 "this works for ranks of one host; for several hosts, it must be a name of the host of rank 0 that "
                 "resolves to another address on the other hosts, or an address of that host");
  } else {
    findings.ok("MASTER_ADDR", value);
  }
}

}  // namespace

bool is_loopback_address(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

const Interface* main_interface(const std::vector<Interface>& interfaces) {
  const Interface* best = nullptr;
  for (const Interface& interface : interfaces) {
    if (!is_usable(interface)) continue;
    if (interface.default_route) return &interface;
    if (best == nullptr) best = &interface;
  }
  return best;
}

std::vector<Finding> judge_network(const Network& network) {
  Findings findings("network");
  for (const Interface& interface : network.interfaces) judge_interface(findings, interface);
  const Interface* main = main_interface(network.interfaces);
  if (main == nullptr) {
    findings.add(State::warning, "other hosts", "no interface but loopback is up with an address",
                 "ranks of one host need no other; for several hosts, connect an interface, or give the container one "
                 "(docker --network host)");
  } else if (!main->default_route) {
    findings.add(State::note, "other hosts", "no default route",
                 "name the interface that leads to them in comm.options.interface (gloo, nccl) or comm.options.devices "
                 "(ucx)");
  }
  judge_mtus(findings, network.interfaces);
  judge_hostname(findings, network);
  if (!network.rdma_devices.empty()) findings.ok("RDMA", joined(network.rdma_devices));
  return std::move(findings).list();
}

std::vector<Finding> judge_variables(const std::vector<std::pair<std::string, std::string>>& variables,
                                     const Network& network, const Cores& cores) {
  Findings findings("variables");
  for (const auto& [name, value] : variables) {
    if (name == "GLOO_SOCKET_IFNAME" || name == "NCCL_SOCKET_IFNAME" || name == "UCX_NET_DEVICES") {
      judge_interface_variable(findings, name, value, network);
    } else if (name == "MASTER_ADDR") {
      judge_master(findings, value, network);
    } else if (name == "MASTER_PORT") {
      judge_number(findings, name, value, 65535);
    } else if (name == "OMP_NUM_THREADS") {
      judge_threads(findings, value, cores);
    } else if (name == "NCCL_IB_DISABLE" && value == "1" && !network.rdma_devices.empty()) {
      findings.add(State::warning, name, value + ", but this host has " + joined(network.rdma_devices),
                   "unset it, or NCCL uses sockets instead of RDMA");
    } else {
      findings.ok(name, value);
    }
  }
  if (variables.empty()) findings.ok("variables", "none that change communication");
  return std::move(findings).list();
}

}  // namespace ddprun::doctor
