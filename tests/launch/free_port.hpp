// A port for a test.
#pragma once

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "launch/unique_fd.hpp"

namespace ddprun::launch::testing {

// A loopback port that no process listens on and none can bind while this object lives.
struct FreePort {
  FreePort() {
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
