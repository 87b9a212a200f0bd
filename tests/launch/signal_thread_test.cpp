#include "launch/signals.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

namespace {

using namespace ddprun::launch;
using namespace std::chrono_literals;

// Whether a process that runs `body` exits with 0, and thus is not ended by a signal.
bool succeeds(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void wait_for(const std::atomic<int>& count, int value) {  // alarm() is the deadline
  while (count < value) std::this_thread::sleep_for(1ms);
}

TEST_CASE("the thread gets the signal and its value while the main thread is blocked") {
  CHECK(succeeds([] {
    hold_usr2();
    std::atomic<int> calls{0}, values{0};
    const Usr2Thread thread([&](int value) {
      values += value;
      ++calls;
    });
    kill(getpid(), SIGUSR2);
    wait_for(calls, 1);
    sigqueue(getpid(), SIGUSR2, {.sival_int = 5});
    wait_for(calls, 2);
    return values == 5;
  }));
}

TEST_CASE("a signal that comes before the thread is kept for it, and one after it does nothing") {
  CHECK(succeeds([] {
    hold_usr2();
    kill(getpid(), SIGUSR2);
    std::atomic<int> calls{0};
    {
      const Usr2Thread thread([&](int) { ++calls; });
      wait_for(calls, 1);
    }
    kill(getpid(), SIGUSR2);
    return calls == 1;
  }));
}

TEST_CASE("a signal that nobody holds belongs to the program, and is not sent") {
  CHECK(succeeds([] {
    send_held_usr2(3);  // it would end this process
    hold_usr2();
    std::atomic<int> calls{0}, values{0};
    const Usr2Thread thread([&](int value) {
      values += value;
      ++calls;
    });
    send_held_usr2(5);
    wait_for(calls, 1);
    return values == 5;
  }));
}

TEST_CASE("a thread that existed before does not let the signal end the process") {
  CHECK(succeeds([] {
    std::atomic<bool> stop{false};
    std::thread other([&] {
      while (!stop) std::this_thread::sleep_for(1ms);
    });
    hold_usr2();
    pthread_kill(other.native_handle(), SIGUSR2);
    std::this_thread::sleep_for(20ms);
    stop = true;
    other.join();
    return true;
  }));
}

}  // namespace
