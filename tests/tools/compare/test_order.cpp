#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tools/compare/statistics.hpp"

using ddprun::compare::turn_order;
using Order = std::vector<std::size_t>;

TEST_CASE("two variants: AB BA BA AB") {
  CHECK(turn_order(2, 0) == Order{0, 1});
  CHECK(turn_order(2, 1) == Order{1, 0});
  CHECK(turn_order(2, 2) == Order{1, 0});
  CHECK(turn_order(2, 3) == Order{0, 1});
}

TEST_CASE("every round has every variant once") {
  for (std::size_t variants = 1; variants <= 7; ++variants) {
    for (std::size_t round = 0; round < 20; ++round) {
      const Order order = turn_order(variants, round);
      CHECK(order.size() == variants);
      CHECK(std::set<std::size_t>(order.begin(), order.end()).size() == variants);
      CHECK(*std::max_element(order.begin(), order.end()) == variants - 1);
    }
  }
}

TEST_CASE("2n rounds are balanced in places and predecessors") {
  for (std::size_t variants = 2; variants <= 7; ++variants) {
    std::map<std::pair<std::size_t, std::size_t>, int> at_place, follows;
    for (std::size_t round = 0; round < 2 * variants; ++round) {
      const Order order = turn_order(variants, round);
      for (std::size_t place = 0; place < variants; ++place) ++at_place[{order[place], place}];
      for (std::size_t place = 1; place < variants; ++place) ++follows[{order[place - 1], order[place]}];
    }
    CHECK(at_place.size() == variants * variants);
    for (const auto& [where, times] : at_place) CHECK(times == 2);
    CHECK(follows.size() == variants * (variants - 1));
    for (const auto& [pair, times] : follows) CHECK(times == 2);
  }
}
