// Joining over Gloo if something prevents it.
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
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

// What rank 0 and rank 1, two threads, gather. Before a rank sends the address of its port, another program connects to
// it: in the first `times` attempts.
class TwoRanks {
 public:
  explicit TwoRanks(int times) : times_{times, times} {}
  ~TwoRanks() {
    for (const auto& sockets : strangers_) std::ranges::for_each(sockets, close);
  }
  TwoRanks(const TwoRanks&) = delete;
  TwoRanks& operator=(const TwoRanks&) = delete;

  // late: how long this rank stops after each gather.
  JoinOptions options(int rank, std::chrono::milliseconds late = 0ms) {
    JoinOptions options{.rank = rank, .size = 2};
    options.allgather = [this, rank, late](std::string_view mine) {
      auto parts = gather(rank, mine);
      std::this_thread::sleep_for(late);
      return parts;
    };
    return options;
  }

 private:
  std::vector<std::string> gather(int rank, std::string_view mine) {
    const auto at = static_cast<std::size_t>(rank);
    if (times_[at] > 0 && mine.size() > 2 * sizeof(sockaddr_storage)) connect_a_stranger(at, mine);
    parts_[at] = mine;
    all_have_sent_.arrive_and_wait();
    auto parts = parts_;
    all_have_read_.arrive_and_wait();
    return parts;
  }

  // `addresses`: this rank's port for rank 0, and for rank 1. (Once the ranks are connected, nothing listens there.)
  void connect_a_stranger(std::size_t rank, std::string_view addresses) {
    sockaddr_storage address = {};
    std::memcpy(&address, addresses.data() + (1 - rank) * addresses.size() / 2, sizeof address);
    const int stranger = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(stranger, reinterpret_cast<sockaddr*>(&address), sizeof(sockaddr_in)) == 0) --times_[rank];
    strangers_[rank].push_back(stranger);
  }

  std::array<int, 2> times_;
  std::array<std::vector<int>, 2> strangers_;
  std::vector<std::string> parts_ = std::vector<std::string>(2);
  std::barrier<> all_have_sent_{2}, all_have_read_{2};
};

TEST_CASE("another program that connects to a rank's port first does not become its peer") {
  TwoRanks ranks(2);
  std::unique_ptr<PluginBackend> backends[2];
  std::thread other([&] { backends[1] = join(gloo(), ranks.options(1)); });
  backends[0] = join(gloo(), ranks.options(0));
  other.join();

  float sums[2] = {1, 2};
  std::thread second([&] { backends[1]->allreduce({.send = &sums[1], .recv = &sums[1], .count = 1}).wait(10s); });
  backends[0]->allreduce({.send = &sums[0], .recv = &sums[0], .count = 1}).wait(10s);
  second.join();
  CHECK(sums[0] == 3);
  CHECK(sums[1] == 3);
}

TEST_CASE("ranks whose ports another program takes each time join only if Gloo knows its peers") {
  TwoRanks ranks(100);
  std::string errors[2];
  std::thread other([&] { errors[1] = error_of([&] { join(gloo(), ranks.options(1)); }); });
  errors[0] = error_of([&] { join(gloo(), ranks.options(0)); });
  other.join();
  for (const auto& error : errors) {
    CAPTURE(error);
#if __has_include(<gloo/transport/tcp/listener.h>)  // Debian 13's Gloo: all peers use one port, and say who they are
    CHECK(error == "no error");
#else
    CHECK(error.find("the ranks could not connect, after 3 attempts: ") != error.npos);
#endif
  }
}

TEST_CASE("a rank may leave as soon as it has joined") {
  TwoRanks ranks(0);
  std::string errors[2];
  std::thread other([&] { errors[1] = error_of([&] { join(gloo(), ranks.options(1)).reset(); }); });
  errors[0] = error_of([&] { join(gloo(), ranks.options(0, 50ms)); });
  other.join();
  for (const auto& error : errors) CHECK(error == "no error");
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
        "4: gloo: rank 0: joining 2 ranks: timeout: rank 1 could not be reached at 127.255.255.254 within 300 ms; "
        "this rank listens on 127.0.0.1 (lo)");
}

}  // namespace
}  // namespace ddprun::comm
