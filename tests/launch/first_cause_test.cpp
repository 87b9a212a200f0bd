#include "launch/first_cause.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>

#include "launch/rank_processes.hpp"
#include "testing/temp_dir.hpp"

namespace {

using namespace ddprun;
using namespace ddprun::launch;
using ddprun::testing::TempDir;
using std::chrono::nanoseconds;

RankEnd ended(int rank, int at) {
  RankEnd end;
  end.rank = rank;
  end.pid = 4711;
  end.host = "host";
  end.time = nanoseconds(at);
  return end;
}

RankEnd exited(int rank, int code, int at) {
  RankEnd end = ended(rank, at);
  end.exit_code = code;
  return end;
}

RankEnd killed(int rank, int signal, int at) {
  RankEnd end = ended(rank, at);
  end.signal = signal;
  return end;
}

RankEnd reported(int rank, ExitCode code, int at, RankEnd end) {
  end.failure = Failure{rank, code, nanoseconds(at), "what rank " + std::to_string(rank) + " said"};
  return end;
}

int rank_of_cause(const std::vector<RankEnd>& ends) {
  const RankEnd* cause = first_cause(ends);
  return cause == nullptr ? -1 : cause->rank;
}

TEST_CASE("a rank that aborts after another one has exited is not the first cause") {
  CHECK(rank_of_cause({killed(0, SIGABRT, 2), exited(1, 7, 1)}) == 1);
  CHECK(rank_of_cause({killed(0, SIGSEGV, 2), exited(1, 7, 1)}) == 0);
}

TEST_CASE("if all ended well there is no cause") {
  CHECK(rank_of_cause({exited(0, 0, 1), exited(1, 0, 2)}) == -1);
}

TEST_CASE("a death by signal precedes earlier reports and exit codes") {
  CHECK(rank_of_cause({exited(0, 1, 1), reported(1, ExitCode::failure, 1, exited(1, 1, 2)), killed(2, SIGKILL, 9)}) ==
        2);
}

TEST_CASE("a kill by the launcher is not a cause") {
  RankEnd end = killed(0, SIGKILL, 1);
  end.killed_by_launcher = true;
  CHECK(rank_of_cause({end, exited(1, 5, 9)}) == 1);
  CHECK(rank_of_cause({end}) == -1);
}

TEST_CASE("a rank's own failure precedes the failures of ranks that lost a peer") {
  CHECK(rank_of_cause({exited(0, 5, 1), reported(1, ExitCode::peer, 2, exited(1, 5, 2)), exited(2, 3, 9)}) == 2);
  CHECK(rank_of_cause({exited(0, 5, 1), reported(1, ExitCode::usage, 8, exited(1, 2, 9))}) == 1);
}

TEST_CASE("among equals the earlier one is the cause, by the time of its report if there is one") {
  CHECK(rank_of_cause({killed(0, SIGSEGV, 5), killed(1, SIGBUS, 4)}) == 1);
  CHECK(rank_of_cause({reported(0, ExitCode::failure, 3, exited(0, 1, 4)),
                       reported(1, ExitCode::failure, 2, exited(1, 1, 9))}) == 1);
}

TEST_CASE("a rank that crashes after its report counts by its report") {
  CHECK(rank_of_cause({reported(0, ExitCode::peer, 1, killed(0, SIGSEGV, 2)), exited(1, 1, 3)}) == 1);
}

TEST_CASE("a rank that hangs after its report is the cause although the launcher killed it") {
  RankEnd end = reported(0, ExitCode::failure, 1, killed(0, SIGKILL, 2));
  end.killed_by_launcher = true;
  CHECK(rank_of_cause({end}) == 0);
}

TEST_CASE("the exit code is 5 for a signal, otherwise that of the first cause") {
  CHECK(exit_code_of(killed(0, SIGTERM, 1)) == ExitCode::peer);
  CHECK(exit_code_of(exited(0, 3, 1)) == ExitCode::plugin);
  CHECK(exit_code_of(exited(0, 42, 1)) == ExitCode::failure);
  CHECK(static_cast<int>(exit_code_of(exited(0, 42, 1), true)) == 42);
  CHECK(exit_code_of(reported(0, ExitCode::gate, 1, exited(0, 1, 1))) == ExitCode::gate);
  CHECK(exit_code_of(reported(0, ExitCode::ok, 1, exited(0, 0, 1))) == ExitCode::failure);
}

TEST_CASE("the line names rank, host, pid, step, phase, bucket and cause") {
  RankEnd end = killed(3, SIGKILL, 1);
  end.progress = {57, Phase::allreduce, 2};
  CHECK(describe(end) == "rank 3 (host, pid 4711) step 57 phase allreduce bucket 2: killed by signal 9 (SIGKILL)");
  end.memory_limit = true;
  CHECK(describe(end).ends_with("killed by signal 9 (SIGKILL), memory limit reached"));
  end.progress = {0, Phase::setup, -1};
  end.signal = SIGSEGV;
  CHECK(describe(end) == "rank 3 (host, pid 4711) phase setup: killed by signal 11 (SIGSEGV)");
  CHECK(describe(exited(0, 3, 1)) == "rank 0 (host, pid 4711) phase start: exited with code 3");
  CHECK(describe(reported(0, ExitCode::usage, 1, exited(0, 2, 1))).ends_with(": what rank 0 said"));
}

TEST_CASE("a rank that hung precedes those that waited for it, and the line has what the first of them reported") {
  std::vector<RankEnd> ends = {reported(0, ExitCode::peer, 3, exited(0, 5, 4)), killed(1, SIGKILL, 9),
                               reported(2, ExitCode::peer, 2, exited(2, 5, 4))};
  ends[1].killed_by_launcher = true;
  CHECK(rank_of_cause(ends) == 2);
  ends[1].hung = true;
  ends[1].progress = {57, Phase::forward, -1};
  CHECK(rank_of_cause(ends) == 1);
  CHECK(exit_code_of(ends[1]) == ExitCode::peer);
  CHECK(describe(ends[1]) + elsewhere(ends[1], ends) ==
        "rank 1 (host, pid 4711) step 57 phase forward: no progress, and the others waited for it; rank 2 reported: "
        "what rank 2 said");
  ends[0].failure->code = ExitCode::failure;  // a failure of its own
  CHECK(rank_of_cause(ends) == 0);
}

TEST_CASE("if ranks lost their peers, the line names the ranks that were elsewhere, the smallest group first") {
  std::vector<RankEnd> ends;
  for (int rank = 0; rank < 10; ++rank) {
    ends.push_back(ended(rank, 1));
    ends.back().progress = {57, Phase::allreduce, 2};
  }
  ends[0] = reported(0, ExitCode::peer, 1, ends[0]);
  CHECK(elsewhere(ends[0], ends).empty());
  ends[9].progress = {57, Phase::data, -1};
  CHECK(elsewhere(ends[0], ends) == "; rank 9 was in step 57 phase data");
  for (const int rank : {1, 3, 4, 5, 7, 8}) ends[rank].progress = {0, Phase::done, -1};
  CHECK(elsewhere(ends[0], ends) == "; rank 9 was in step 57 phase data, ranks 1, 3 to 5, 7 and 8 in phase done");
  ends[9].progress = {57, Phase::allreduce, 2};
  CHECK(elsewhere(ends[0], ends) == "; ranks 1, 3 to 5, 7 and 8 were in phase done");
  // These failures have another cause.
  CHECK(elsewhere(reported(0, ExitCode::failure, 1, ends[0]), ends).empty());
  CHECK(elsewhere(killed(2, SIGKILL, 1), ends).empty());
}

TEST_CASE("the line names all nodes that were lost") {
  std::vector<RankEnd> ends;
  for (const int node : {0, 1, 2}) {
    ends.push_back(ended(2 * node, 5 - node));
    ends.back().host = "node" + std::to_string(node);
    ends.back().lost = node == 0 ? 0 : 3 - node;
    ends.back().silent = true;
  }
  const RankEnd* cause = first_cause(ends);
  REQUIRE(cause == &ends[2]);
  CHECK(describe(*cause) + elsewhere(*cause, ends) ==
        "rank 4 (node2): lost: this host does not answer any more; ranks 2 and 3 (node1) are lost too");
  CHECK(elsewhere(ends[1], {ends[0], ends[1]}).empty());
  // For example, the ranks that were left could not save.
  ends[0] = reported(0, ExitCode::failure, 9, ends[0]);
  CHECK(elsewhere(ends[1], {ends[0], ends[1]}) == "; " + describe(ends[0]));
}

TEST_CASE("kills at the memory limit are counted in cgroups of version 2 and 1") {
  const TempDir mount;
  std::filesystem::create_directories(mount.path() / "job" / "one");
  std::filesystem::create_directories(mount.path() / "memory" / "old");
  mount.write("job/one/memory.events", "low 0\nhigh 3\nmax 2\noom 1\noom_kill 7\n");
  mount.write("memory/old/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
  CHECK(oom_kills("0::/job/one\n", mount.path()) == 7);
  CHECK(oom_kills("5:cpu,memory:/old\n1:cpu:/\n0::/\n", mount.path()) == 4);
  CHECK(oom_kills("5:memoryx:/old\n0::/elsewhere\nnonsense\n", mount.path()) == 0);
}

}  // namespace
