#include <doctest/doctest.h>

#include "record/meters.hpp"

using ddprun::record::Meter;

TEST_CASE("a meter weights each value by its count") {
  Meter loss;
  loss.update(2.0, 3);
  loss.update(5.0, 1);
  CHECK(loss.val == 5.0);
  CHECK(loss.sum == 11.0);
  CHECK(loss.count == 4);
  CHECK(loss.avg == 2.75);
}

TEST_CASE("a meter without values has the average 0, and resets to it") {
  Meter time;
  CHECK(time.avg == 0);
  time.update(1.5);
  time.reset();
  CHECK(time.avg == 0);
  CHECK(time.count == 0);
}
