// Ranks that are forked from the launcher.
#include "launch/child.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "support/process.hpp"

namespace {

using namespace ddprun::launch;
using ddprun::testing::eventually;
using namespace std::chrono_literals;

// What a descriptor gives until its end; what came in time if that takes longer than 10 s.
std::string all_of(int fd) {
  std::string text;
  char buffer[256];
  pollfd entry{fd, POLLIN, 0};
  while (::poll(&entry, 1, 10000) > 0) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

int exit_code_of(pid_t pid) {
  int status = 0;
  const bool ended = eventually([&] { return ::waitpid(pid, &status, WNOHANG) == pid; }, 10s);
  if (!ended) ::kill(pid, SIGKILL);
  REQUIRE(ended);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool is_blocked_or_ignored(int signal) {
  sigset_t mask;
  ::sigprocmask(SIG_SETMASK, nullptr, &mask);
  struct sigaction now {};
  ::sigaction(signal, nullptr, &now);
  return ::sigismember(&mask, signal) == 1 || now.sa_handler != SIG_DFL;
}

TEST_CASE("a forked rank has what was prepared, its variables and its output") {
  const std::string prepared = "prepared";
  const auto main = [&] {
    std::printf("%s %s, PATH %s", prepared.c_str(), std::getenv("DDPRUN_RANK"), std::getenv("PATH"));
    std::fflush(stdout);
    return ::getpgrp() == ::getpid() ? 7 : 1;
  };
  const auto child = fork_rank(main, {"DDPRUN_RANK=1", "PATH=here"}, [] { std::printf("first, "); });
  ::fcntl(child.out.get(), F_SETFL, 0);
  CHECK(all_of(child.out.get()) == "first, prepared 1, PATH here");
  CHECK(exit_code_of(child.pid) == 7);
}

TEST_CASE("a rank has no blocked or ignored signals") {
  const auto handler = ::signal(SIGUSR1, SIG_IGN);
  sigset_t terminate, before;
  ::sigemptyset(&terminate);
  ::sigaddset(&terminate, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &terminate, &before);
  const auto main = [] { return is_blocked_or_ignored(SIGTERM) || is_blocked_or_ignored(SIGUSR1) ? 1 : 0; };
  const auto child = fork_rank(main, {}, [] {});
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ::signal(SIGUSR1, handler);
  CHECK(exit_code_of(child.pid) == 0);
}

}  // namespace
