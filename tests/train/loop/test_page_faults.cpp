#include <doctest/doctest.h>

#include <cmath>

#include "train/loop/page_faults.hpp"
#include "train/touch_pages.hpp"

using ddprun::testing::touch_pages;
using ddprun::train::PageFaultMeter;

namespace {
constexpr std::size_t kPages = 2000;
}

TEST_CASE("page faults of the first steps, and those between epochs, do not count") {
  PageFaultMeter meter;
  int64_t steps = 0;
  meter.start(steps);
  while (steps < PageFaultMeter::kWarmSteps) {
    touch_pages(kPages);
    meter.step(++steps);
  }
  meter.stop(steps);
  CHECK(std::isnan(meter.per_step()));
  touch_pages(kPages);
  meter.start(steps);
  for (int i = 0; i < 10; ++i) meter.step(++steps);
  meter.stop(steps);
  CHECK(meter.per_step() < kPages / 10.0);
}

TEST_CASE("page faults are the average per step after the first ones") {
  PageFaultMeter meter;
  int64_t steps = 0;
  meter.start(steps);
  while (steps < PageFaultMeter::kWarmSteps + 3) meter.step(++steps);
  touch_pages(kPages);
  meter.step(++steps);
  meter.stop(steps);
  CHECK(meter.per_step() >= kPages / 4.0);
  CHECK(meter.per_step() < kPages / 2.0);
}
