#include <doctest/doctest.h>

#include <cmath>

#include "cli/console/console.hpp"

using ddprun::console::Meter;

TEST_CASE("a meter weights each value by its count") {
  Meter loss;
  loss.update(2.0, 3);
  loss.update(5.0, 1);
  CHECK(loss.all.count == 4);
  CHECK(loss.all.value() == 2.75);
}

TEST_CASE("a meter keeps the mean of all values, and that of those since it was cleared") {
  Meter time;
  time.update(1);
  time.update(2);
  CHECK(time.recent.value() == 1.5);
  time.recent = {};
  CHECK(std::isnan(time.recent.value()));
  time.update(6);
  CHECK(time.recent.value() == 6);
  CHECK(time.all.value() == 3);
}
