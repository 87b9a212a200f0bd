// The processes that wait to become ranks.
#include "launch/forked_ranks.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "support/process.hpp"
#include "support/read_file.hpp"
#include "support/text.hpp"

namespace {

using namespace ddprun::launch;
using ddprun::testing::contains;
using ddprun::testing::eventually;
using ddprun::testing::read_file;
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

TEST_CASE("a process that waits becomes a rank with what was prepared, its variables and its output") {
  const std::string prepared = "prepared";
  ForkedRanks ranks(2, [&] {
    std::printf("%s %s %s, PATH %s", prepared.c_str(), std::getenv("LONG"), std::getenv("DDPRUN_RANK"),
                std::getenv("PATH"));
    std::fflush(stdout);
    return ::getpgrp() == ::getpid() ? 7 : 1;
  });
  for (const std::string rank : {"0", "1"}) {
    pid_t started = 0;
    auto child = ranks.start({"LONG=" + std::string(100000, 'x') + "end", "DDPRUN_RANK=" + rank, "PATH=here"},
                             [&](pid_t pid) { started = pid; });
    REQUIRE(child);
    ::fcntl(child->out.get(), F_SETFL, 0);
    CHECK(started == child->pid);
    const std::string output = all_of(child->out.get());
    CHECK(contains(output, "prepared xx"));
    CHECK(contains(output, "xend " + rank + ", PATH here"));
    CHECK(exit_code_of(child->pid) == 7);
  }
  CHECK_FALSE(ranks.start({}, {}));
}

TEST_CASE("ps shows which rank a process is") {
  ForkedRanks ranks(1, [] {
    ::pause();
    return 0;
  });
  const auto child = ranks.start({"DDPRUN_RANK=1"}, [](pid_t) {});
  REQUIRE(child);
  const std::string path = "/proc/" + std::to_string(child->pid) + "/comm";
  CHECK(eventually([&] { return read_file(path) == "ddprun-rank1\n"; }, 10s));
  ::kill(child->pid, SIGKILL);
  CHECK(exit_code_of(child->pid) == -SIGKILL);
}

TEST_CASE("a rank has no blocked or ignored signals") {
  const auto handler = ::signal(SIGUSR1, SIG_IGN);
  sigset_t terminate, before;
  ::sigemptyset(&terminate);
  ::sigaddset(&terminate, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &terminate, &before);
  ForkedRanks ranks(1, [] { return is_blocked_or_ignored(SIGTERM) || is_blocked_or_ignored(SIGUSR1) ? 1 : 0; });
  const auto child = ranks.start({}, [](pid_t) {});
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ::signal(SIGUSR1, handler);
  REQUIRE(child);
  CHECK(exit_code_of(child->pid) == 0);
}

TEST_CASE("a process that was not started ends with the launcher, however that ends") {
  {
    const ForkedRanks ranks(2, [] { return 0; });
  }
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);

  int ends[2];
  REQUIRE(::pipe(ends) == 0);  // the launcher and its ranks hold the write end
  const pid_t launcher = ::fork();
  if (launcher == 0) {
    const ForkedRanks ranks(2, [] { return 0; });
    ::kill(::getpid(), SIGKILL);
  }
  ::close(ends[1]);
  CHECK(exit_code_of(launcher) == -SIGKILL);
  pollfd end{ends[0], POLLIN, 0};
  CHECK(::poll(&end, 1, 10000) == 1);
  ::close(ends[0]);
}

}  // namespace
