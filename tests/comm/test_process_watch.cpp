#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "ddprun/plugin/host.hpp"

namespace ddprun {

TEST_CASE("a zombie process counts as ended, before it is reaped") {
  CHECK_FALSE(ProcessWatch().has_ended());
  CHECK_FALSE(ProcessWatch(::getpid()).has_ended());

  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const ProcessWatch watch(child);
  CHECK_FALSE(watch.has_ended());
  ::kill(child, SIGKILL);
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);  // ended, now a zombie
  CHECK(watch.has_ended());
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(watch.has_ended());
  CHECK(ProcessWatch(child).has_ended());
}

TEST_CASE("a later process with the same pid is not the watched one") {
  const uint64_t started = start_time(::getpid());
  REQUIRE(started > 0);
  CHECK_FALSE(ProcessWatch(::getpid(), started).has_ended());
  CHECK(ProcessWatch(::getpid(), started - 1).has_ended());
  CHECK(ProcessWatch(::getpid(), started - 1).error() == 0);
}

}  // namespace ddprun
