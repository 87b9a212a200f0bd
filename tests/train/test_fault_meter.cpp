#include <doctest/doctest.h>

#include <cmath>

#include "touch_pages.hpp"
#include "train/loop/fault_meter.hpp"

using ddprun::testing::touch_pages;
using ddprun::train::FaultMeter;

namespace {
constexpr std::size_t kPages = 2000;
}

TEST_CASE("page faults of the first steps, and those between epochs, do not count") {
  FaultMeter meter;
  int64_t steps = 0;
  meter.start(steps);
  while (steps < FaultMeter::kWarmSteps) {
    touch_pages(kPages);
    meter.warm(++steps);
  }
  meter.stop(steps);
  CHECK(std::isnan(meter.per_step()));
  touch_pages(kPages);
  meter.start(steps);
  for (int i = 0; i < 10; ++i) meter.warm(++steps);
  meter.stop(steps);
  CHECK(meter.per_step() < kPages / 10.0);
}

TEST_CASE("page faults are those of an average step after the first ones") {
  FaultMeter meter;
  int64_t steps = 0;
  meter.start(steps);
  while (steps < FaultMeter::kWarmSteps + 3) meter.warm(++steps);
  touch_pages(kPages);
  meter.warm(++steps);
  meter.stop(steps);
  CHECK(meter.per_step() >= kPages / 4.0);
  CHECK(meter.per_step() < kPages / 2.0);
}
