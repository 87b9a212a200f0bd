// For tests that need an address of this host.
#pragma once

#include <cstdio>
#include <string>

#include "ddprun/plugin/network_interface.hpp"

namespace ddprun::launch {

// An address of this host that other hosts may know; "" without one.
inline std::string outer_address() {
  for (const auto& one : network_interfaces()) {
    if (one.is_up && !one.is_loopback && !one.addresses.empty()) return one.addresses.front();
  }
  std::puts("skipped: this host has the loopback interface only");
  return "";
}

}  // namespace ddprun::launch
