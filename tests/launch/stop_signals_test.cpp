#include "launch/stop_signals.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

namespace {

using namespace ddprun;
using namespace ddprun::launch;

// The exit code of a process that runs `body` and, if it gets so far, exits with 0.
int exit_code_of(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    body();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST_CASE("before the first step each signal ends the process at once, with its code") {
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, {SIGTERM, 143}, {SIGUSR1, 143}}) {
    CAPTURE(signal);
    CHECK(exit_code_of([signal = signal] {
            catch_stop_signals();
            raise(signal);
          }) == code);
  }
}

TEST_CASE("later the first signal is recorded, and the second SIGINT or SIGTERM ends the process") {
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, {SIGTERM, 143}, {SIGUSR1, 143}}) {
    CAPTURE(signal);
    CHECK(exit_code_of([signal = signal] {
            catch_stop_signals();
            defer_stop_signals();
            if (stop_signal() != ExitCode::ok) _exit(1);
            raise(signal);
            _exit(static_cast<int>(stop_signal()));
          }) == code);
    for (const auto& [second, end] : {std::pair{SIGINT, 130}, {SIGTERM, 143}}) {
      CAPTURE(second);
      CHECK(exit_code_of([signal = signal, second = second] {
              catch_stop_signals();
              defer_stop_signals();
              raise(signal);
              raise(second);
            }) == end);
    }
  }
}

TEST_CASE("SIGUSR1 after another signal is the same request") {
  CHECK(exit_code_of([] {
          catch_stop_signals();
          defer_stop_signals();
          raise(SIGINT);
          raise(SIGUSR1);
          _exit(static_cast<int>(stop_signal()));
        }) == 130);
}

}  // namespace
