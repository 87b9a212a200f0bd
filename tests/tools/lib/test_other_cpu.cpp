#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <string>
#include <thread>

#include "tools/lib/process.hpp"

using ddprun::tools::CpuMeter;
using ddprun::tools::CpuUse;
using ddprun::tools::other_share;

namespace {

void work_for(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

// A process that works until it is killed.
pid_t busy_process() {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    while (true) work_for(std::chrono::milliseconds(100));
  }
  return child;
}

}  // namespace

TEST_CASE("a busy process counts as another program until it is reaped") {
  const CpuMeter meter;
  const pid_t child = busy_process();
  work_for(std::chrono::milliseconds(500));
  const double running = other_share({meter.use()});
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  // The other programs of this machine count in both.
  CHECK(running > 0.02 / static_cast<double>(std::thread::hardware_concurrency()));
  CHECK(other_share({meter.use()}) < running);
}

TEST_CASE("too short a time has no share") {
  const CpuMeter meter;
  CHECK(std::isnan(other_share({meter.use()})));
  CHECK(std::isnan(other_share({})));
}

TEST_CASE("parts of one run on one machine are not other programs to each other") {
  const CpuUse first{"a", 10, 9, 4}, second{"a", 8, 7, 4};
  CHECK(other_share({first}) == doctest::Approx(0.5));
  CHECK(other_share({first, second}) == doctest::Approx(0.1));
  CHECK(other_share({second, first}) == doctest::Approx(0.1));
}

TEST_CASE("of several machines, the one counts on which other programs used the most") {
  const CpuUse quiet{"a", 10, 5, 5}, busy{"b", 10, 9, 5};
  CHECK(other_share({quiet, busy}) == doctest::Approx(0.4));
  CHECK(other_share({quiet, {"b", 0.01, 0.01, 0}}) == 0);
}

TEST_CASE("a machine is named by the boot id of its kernel") {
  const std::string machine = CpuMeter().use().machine;
  CHECK(machine.size() == 36);  // a UUID
}
