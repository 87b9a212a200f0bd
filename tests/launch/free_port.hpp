// A port for a test.
#pragma once

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/unique_fd.hpp"

namespace ddprun::launch::testing {

// A loopback port that no process listens on. While this object lives, the kernel gives the port to nobody else, and
// nobody can bind it; `for_listener`: a listener with SO_REUSEADDR can.
struct FreePort {
  explicit FreePort(bool for_listener = false) {
    const int on = for_listener ? 1 : 0;
    REQUIRE(setsockopt(bound.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(bind(bound.get(), generic, length) == 0);
    REQUIRE(getsockname(bound.get(), generic, &length) == 0);
    number = ntohs(address.sin_port);
  }
  const UniqueFd bound{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  int number = 0;
};

}  // namespace ddprun::launch::testing
