#include "launch/signals.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>

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

TEST_CASE("a process that acknowledges answers the first signal by a line, and erases its status line") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const int code = exit_code_of([&] {
    dup2(ends[1], STDERR_FILENO);
    catch_stop_signals();
    acknowledge_stop_signals(true);
    defer_stop_signals();
    raise(SIGINT);
    raise(SIGINT);
  });
  close(ends[1]);
  char text[200];
  const ssize_t size = read(ends[0], text, sizeof text);
  close(ends[0]);
  CHECK(code == 130);
  CHECK(std::string(text, static_cast<std::size_t>(size)) ==
        "\x1b[2K\rddprun: stopping after this step, with a checkpoint (a second signal ends the run at once)\n"
        "\x1b[2K\r");
}

}  // namespace
