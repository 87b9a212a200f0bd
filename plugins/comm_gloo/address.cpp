#include "address.hpp"

#include <algorithm>
#include <cstdlib>

namespace ddprun::gloo_backend {
namespace {

// `named_by`: what names the interface, for errors.
std::string address_of(const std::string& name, const std::string& named_by, const Host& host,
                       const std::vector<NetworkInterface>& interfaces) {
  const auto found = std::ranges::find(interfaces, name, &NetworkInterface::name);
  const char* const wrong = found == interfaces.end()  ? "there is no such interface"
                            : !found->is_up            ? "this interface is down"
                            : found->addresses.empty() ? "this interface has no address"
                                                       : nullptr;
  if (wrong != nullptr) {
    throw CommError(CommStatus::invalid,
                    named_by + " = \"" + name + "\": " + wrong + "; this host has " + list_of(interfaces));
  }
  return std::ranges::count(found->addresses, host.address()) > 0 ? host.address() : found->addresses.front();
}

}  // namespace

std::string listening_address(const Host& host, bool one_network, const std::vector<NetworkInterface>& interfaces) {
  const std::string asked = host.options().text("interface");
  if (!asked.empty()) return address_of(asked, "comm.options.interface", host, interfaces);
  if (one_network) {
    constexpr char kLoopback[] = "127.0.0.1";
    const NetworkInterface* const loopback = interface_with(interfaces, kLoopback);
    if (interfaces.empty() || (loopback != nullptr && loopback->is_up)) return kLoopback;
    throw CommError(CommStatus::invalid,
                    "the ranks of one host connect at 127.0.0.1, which is missing: this host has " +
                        list_of(interfaces) + "; run `ip link set lo up`, or use shm or ucx, which do not need it");
  }
  if (const char* name = std::getenv("GLOO_SOCKET_IFNAME"); name != nullptr && *name != '\0') {
    return address_of(name, "GLOO_SOCKET_IFNAME", host, interfaces);
  }
  if (!host.address().empty()) return host.address();
  throw CommError(CommStatus::invalid,
                  "the ranks are on several hosts, and it is not known through which interface the others reach this "
                  "one; this host has " +
                      list_of(interfaces) + kNameInterface);
}

std::string with_interface(const std::string& address, const std::vector<NetworkInterface>& interfaces) {
  const NetworkInterface* const found = interface_with(interfaces, address);
  return found == nullptr ? address : address + " (" + found->name + ")";
}

void require_elsewhere(int rank, const std::string& address, const std::vector<NetworkInterface>& interfaces) {
  if (interface_with(interfaces, address) == nullptr) return;
  throw CommError(CommStatus::invalid, "rank " + std::to_string(rank) + " is on another host and listens on " +
                                           with_interface(address, interfaces) +
                                           ", which is an address of this host too" + kNameInterface);
}

}  // namespace ddprun::gloo_backend
