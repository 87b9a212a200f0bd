// Joining over Gloo when it cannot succeed, and the options that all ranks must agree about.
#include <doctest/doctest.h>

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

// Rank 0 of two. The other one tells an address, and is never heard of again: one above that of rank 0, so that Gloo
// waits to be called by it. It stands in the first bytes, as a sockaddr_in, behind the mark of the mesh.
JoinOptions with_silent_peer(const std::string& busy_poll) {
  JoinOptions options{.rank = 0, .size = 2, .options = {{"busy_poll", busy_poll}}};
  options.allgather = [](std::string_view mine) {
    std::string theirs(mine);
    if (mine.size() > sizeof(uint64_t)) {  // else it is a length
      const std::size_t address = (mine.size() - 1) / 2;
      theirs.replace(1, address, theirs, 1 + address, address);
      theirs.replace(1 + 4, 4, std::string("\x7f\xff\xff\xfe", 4));  // 127.255.255.254
    }
    return std::vector<std::string>{std::string(mine), theirs};
  };
  return options;
}

TEST_CASE("joining a rank that never calls ends at the host's abort flag, long before the deadline") {
  for (const char* busy_poll : {"false", "true"}) {
    CAPTURE(busy_poll);
    auto options = with_silent_peer(busy_poll);
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
}

TEST_CASE("joining a rank that never calls ends at the deadline") {
  for (const char* busy_poll : {"false", "true"}) {
    CAPTURE(busy_poll);
    auto options = with_silent_peer(busy_poll);
    options.deadline = 300ms;
    CHECK(error_of([&] { join(gloo(), options); }) ==
          "4: gloo: rank 0: joining 2 ranks: timeout: rank 1 could not be reached within 300 ms");
  }
}

TEST_CASE("busy_poll is true or false, and the same on all ranks") {
  auto options = with_silent_peer("yes");
  CHECK(error_of([&] { join(gloo(), options); }) ==
        "3: gloo: rank 0: joining 2 ranks: invalid: comm.options.busy_poll = \"yes\": expected true or false");

  options = with_silent_peer("true");
  const auto forged = options.allgather;
  options.allgather = [&](std::string_view mine) {
    auto all = forged(mine);
    if (mine.size() > sizeof(uint64_t)) all[1][0] = 's';
    return all;
  };
  CHECK(error_of([&] { join(gloo(), options); }) ==
        "3: gloo: rank 0: joining 2 ranks: invalid: comm.options.busy_poll differs between the ranks");
}

}  // namespace
}  // namespace ddprun::comm
