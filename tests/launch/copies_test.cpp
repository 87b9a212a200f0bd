#include "launch/copies.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace {

using namespace ddprun::launch;

// Forks a child that reports how many older copies it sees, after `ready` has a byte if it must wait.
struct Copy {
  Copy() {
    REQUIRE(pipe(out.data()) == 0);
    REQUIRE(pipe(go.data()) == 0);
    pid = fork();
    if (pid != 0) return;
    char byte = 0;
    if (read(go[0], &byte, 1) != 1) _exit(1);
    const auto count = static_cast<char>(older_copies().size());
    if (write(out[1], &count, 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  ~Copy() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    for (const int end : {out[0], out[1], go[0], go[1]}) close(end);
  }
  int copies() {
    char count = 0;
    REQUIRE(write(go[1], &count, 1) == 1);
    REQUIRE(read(out[0], &count, 1) == 1);
    return count;
  }
  std::array<int, 2> out{}, go{};
  pid_t pid = -1;
};

TEST_CASE("of several copies that one parent starts at once, each later one sees those before it") {
  Copy first, second, third;
  CHECK(third.copies() == 2);
  CHECK(second.copies() == 1);
  CHECK(first.copies() == 0);
}

TEST_CASE("a process has no copy because another program has the same parent") {
  CHECK(older_copies().empty());
  CHECK(older_copies("/no/such/folder").empty());
}

}  // namespace
