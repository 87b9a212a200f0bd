#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

#include "train/fault_meter.hpp"

using ddprun::train::FaultMeter;

namespace {

constexpr size_t kPages = 2000;

// A step that touches new pages.
void touch_pages() {
  const size_t bytes = kPages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  REQUIRE(madvise(memory, bytes, MADV_NOHUGEPAGE) == 0);
  std::memset(memory, 1, bytes);
  munmap(memory, bytes);
}

}  // namespace

TEST_CASE("page faults of the first steps, and those between epochs, do not count") {
  FaultMeter meter;
  int64_t steps = 0;
  meter.start(steps);
  while (steps < FaultMeter::kWarmSteps) {
    touch_pages();
    meter.warm(++steps);
  }
  meter.stop(steps);
  CHECK(std::isnan(meter.per_step()));
  touch_pages();
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
  touch_pages();
  meter.warm(++steps);
  meter.stop(steps);
  CHECK(meter.per_step() >= kPages / 4.0);
  CHECK(meter.per_step() < kPages / 2.0);
}
