#include <doctest/doctest.h>

#include <csignal>
#include <thread>

#include "support/error_of.hpp"
#include "support/process.hpp"
#include "support/read_file.hpp"
#include "support/text.hpp"
#include "tools/lib/process.hpp"

using namespace ddprun::tools;
using namespace ddprun::testing;
using namespace std::chrono_literals;

namespace {

ProcessPlan shell(const TempDir& dir, const std::string& script) {
  ProcessPlan plan;
  plan.command = {"/bin/sh", "-c", script};
  plan.log = dir.path() / "log";
  return plan;
}

}  // namespace

TEST_CASE("a process: its output, its exit code") {
  const TempDir dir;
  const ProcessEnd end = run_process(shell(dir, "echo out; echo err >&2; exit 3")).process;
  CHECK(end.ending == Ending::exited);
  CHECK(end.code == 3);
  const std::string log = read_file(dir.path() / "log");
  CHECK(contains(log, "out\n"));
  CHECK(contains(log, "err\n"));
  CHECK(run_process(shell(dir, "kill -9 $$")).process.code == 128 + SIGKILL);
}

TEST_CASE("a missing program") {
  const TempDir dir;
  ProcessPlan plan = shell(dir, "");
  plan.command = {"/nowhere/ddprun"};
  CHECK(contains(error_of([&] { run_process(plan); }), "1: cannot start"));
}

TEST_CASE("a deadline ends it with SIGTERM") {
  const TempDir dir;
  ProcessPlan plan = shell(dir, "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.05; done");
  ProcessEnd end;
  // Longer deadlines in case the shell has not set its trap yet.
  for (const auto timeout : {500ms, 3000ms, 20000ms}) {
    plan.timeout = timeout;
    end = run_process(plan).process;
    if (contains(read_file(dir.path() / "log"), "up")) break;
  }
  CHECK(end.ending == Ending::timed_out);
  CHECK(end.code == 7);
  CHECK(contains(read_file(dir.path() / "log"), "bye"));
}

TEST_CASE("its watcher can end it early") {
  const TempDir dir;
  ProcessPlan plan = shell(dir, "trap 'exit 0' TERM; while :; do sleep 0.05; done");
  int looks = 0;
  plan.end_early = [&] { return ++looks == 3; };
  const ProcessEnd end = run_process(plan).process;
  CHECK(end.ending == Ending::ended_early);
  CHECK(looks == 3);
}

TEST_CASE("SIGTERM and SIGINT to this process end it and its children") {
  for (const int signal : {SIGTERM, SIGINT}) {
    const TempDir dir;
    const std::string file = dir.path() / "pid";
    const ProcessPlan plan =
        shell(dir, "trap 'exit 0' TERM; sleep 1000 & echo $! > '" + file + "'; while :; do sleep 0.05; done");
    const pid_t self = ::getpid();
    // Another process sends the signal: run_process() needs a single-threaded caller.
    const pid_t sender = ::fork();
    if (sender == 0) {
      int grandchild = 0;
      eventually([&] { return static_cast<bool>(std::ifstream(file) >> grandchild); });
      ::kill(self, signal);
      ::_exit(0);
    }
    const ProcessEnd end = run_process(plan).process;
    ::waitpid(sender, nullptr, 0);
    CHECK(end.ending == (signal == SIGINT ? Ending::interrupted : Ending::terminated));
    const pid_t grandchild = std::stoi(read_file(file));
    CHECK(eventually([&] { return !is_alive(grandchild); }));
  }
}
