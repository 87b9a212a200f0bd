// Joining over Gloo if it cannot succeed.
#include <doctest/doctest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/plugin_backend.hpp"
#include "plugin/registry.hpp"
#include "support/error_of.hpp"

namespace ddprun::comm {
namespace {

using namespace std::chrono_literals;
using testing::error_of;
using Clock = std::chrono::steady_clock;

const ddprun_comm_plugin& gloo() {
  return *plugin::Registry({}).comm(DDPRUN_GLOO).table;
}

// Rank 0 of two. The other rank is on the same host and sends only an address, above that of rank 0, so that Gloo waits
// for its connection. The first bytes are the address, as a sockaddr_in.
JoinOptions with_silent_peer() {
  JoinOptions options{.rank = 0, .size = 2};
  options.allgather = [](std::string_view mine) {
    std::string theirs(mine);
    const std::size_t address = mine.size() / 2;
    if (address > sizeof(sockaddr_storage) && mine[address] == AF_INET && mine[address + 1] == 0) {
      theirs.replace(0, address, theirs, address, address);
      theirs.replace(4, 4, std::string("\x7f\xff\xff\xfe", 4));  // 127.255.255.254
    }
    return std::vector<std::string>{std::string(mine), theirs};
  };
  return options;
}

TEST_CASE("the host's abort flag ends joining a rank that never connects, long before the deadline") {
  auto options = with_silent_peer();
  options.deadline = 60s;
  options.abort_flag = std::make_shared<std::atomic<int32_t>>(0);
  std::thread other([&] {
    std::this_thread::sleep_for(100ms);
    *options.abort_flag = 1;
  });
  const auto start = Clock::now();
  const std::string error = error_of([&] { join(gloo(), options); });
  other.join();
  CHECK(error == "4: gloo: rank 0: joining 2 ranks: aborted: the communicator was aborted");
  CHECK(Clock::now() - start < 30s);
}

TEST_CASE("the deadline ends joining a rank that never connects") {
  auto options = with_silent_peer();
  options.deadline = 300ms;
  CHECK(error_of([&] { join(gloo(), options); }) ==
        "4: gloo: rank 0: joining 2 ranks: timeout: rank 1 could not be reached within 300 ms");
}

}  // namespace
}  // namespace ddprun::comm
