#include "launch/clocks.hpp"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "launch/net/net_store.hpp"
#include "launch/net/store_server.hpp"
#include "launch/text.hpp"

namespace {

using namespace ddprun::launch;
using namespace ddprun::launch::testing;
using std::chrono::milliseconds;

// What each of the ranks is told, whose clocks show these seconds.
std::vector<std::string> compare(const std::vector<int>& seconds) {
  constexpr milliseconds timeout{20000};
  const Secret secret = make_secret();
  StoreServer server({"127.0.0.1"}, 0, secret);
  std::vector<std::string> lines(seconds.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < seconds.size(); ++rank) {
    threads.emplace_back([&, rank] {
      World world;
      world.rank = static_cast<int>(rank);
      world.size = static_cast<int>(seconds.size());
      const auto store = net_store({"127.0.0.1", server.port(), secret}, timeout);
      lines[rank] = compare_clocks(world, *store, timeout, [&] { return milliseconds(1000 * seconds[rank]); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return lines;
}

TEST_CASE("rank 0 says that a clock is a minute ahead, and of which host") {
  const auto lines = compare({1000, 1061, 1001});
  CHECK_MESSAGE(contains(lines[0], " is 61 s ahead of that of "), lines[0]);
  CHECK(contains(lines[0], "synchronize the clocks (NTP)"));
  CHECK(lines[1].empty());
  CHECK(lines[2].empty());
}

TEST_CASE("clocks that differ by a few seconds are nothing to say") {
  for (const std::string& line : compare({1000, 1004, 999})) CHECK(line.empty());
}

}  // namespace
