#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "tools/compare/other_cpu.hpp"

using ddprun::compare::OtherCpu;

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
  const OtherCpu meter;
  const pid_t child = busy_process();
  work_for(std::chrono::milliseconds(500));
  const double running = meter.share();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  // The other programs of this machine count in both.
  CHECK(running > 0.02 / static_cast<double>(std::thread::hardware_concurrency()));
  CHECK(meter.share() < running);
}

TEST_CASE("too short a time has no share") {
  const OtherCpu meter;
  CHECK_FALSE(meter.share() == meter.share());
}
