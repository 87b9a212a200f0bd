#include "launch/clocks.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "launch/net/address.hpp"
#include "launch/net/bytes.hpp"

namespace ddprun::launch {
namespace {

using std::chrono::milliseconds;

// A smaller difference does not mislead somebody who reads records of several hosts together.
constexpr milliseconds kMostApart{5000};

struct HostClock {
  std::string host;
  milliseconds time;
};

HostClock decode(const std::string& text) {
  ByteReader reader(text);
  const auto time = milliseconds(static_cast<int64_t>(reader.number()));
  return {reader.text(), time};
}

}  // namespace

std::string compare_clocks(const World& world, Store& store, milliseconds timeout,
                           const std::function<milliseconds()>& clock) {
  const std::string mine = ByteWriter().number(static_cast<uint64_t>(clock().count())).text(host_name()).bytes();
  std::vector<HostClock> all;
  for (const auto& text : store.allgather("clocks", world.rank, world.size, mine, timeout)) all.push_back(decode(text));
  if (world.rank != 0) return "";
  const auto [first, last] =
      std::minmax_element(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
  const milliseconds apart = last->time - first->time;
  if (apart <= kMostApart) return "";
  return "the clock of " + last->host + " is " + std::to_string(apart.count() / 1000) + " s ahead of that of " +
         first->host + ", and so are the times in its records and logs; synchronize the clocks (NTP)";
}

std::string compare_clocks(const World& world, Store& store, milliseconds timeout) {
  return compare_clocks(world, store, timeout, [] {
    return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch());
  });
}

}  // namespace ddprun::launch
