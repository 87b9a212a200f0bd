// Several launchers of one job, as on several hosts, with ranks that follow a script (fake_job.cpp).
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "launch/free_port.hpp"
#include "launch/job.hpp"
#include "support/text.hpp"

namespace {

using namespace ddprun::launch::testing;
using std::chrono::seconds;

constexpr seconds kLimit{60};

struct JobOfNodes {
  // Each element: the ranks of a node.
  // least: of a job that survives deaths; 0: a death ends it.
  JobOfNodes(const std::vector<int>& nodes, std::vector<std::string> steps, int restarts = 0, int least = 0,
             std::string timeout = "20000")
      : count(static_cast<int>(nodes.size())),
        restarts(restarts),
        least(least),
        timeout(std::move(timeout)),
        steps(std::move(steps)) {
    for (int node = 0; node < count; ++node) start(node, nodes[static_cast<std::size_t>(node)]);
  }

  void start(int node, int ranks) {
    launchers.resize(static_cast<std::size_t>(count));
    launchers[static_cast<std::size_t>(node)] = std::make_unique<FakeJob>(
        ranks, steps, false, "-", "60000",
        std::vector<std::string>{"FAKE_JOB_NODE=" + std::to_string(node) + ":" + std::to_string(count) + ":" +
                                     std::to_string(port) + ":" + std::to_string(restarts),
                                 "FAKE_JOB_SURVIVES=" + std::to_string(least) + ":0", "FAKE_JOB_TIMEOUT=" + timeout});
  }

  // Until each node has printed it.
  void wait_for_text(const std::string& text) {
    REQUIRE(eventually([&] {
      return std::all_of(launchers.begin(), launchers.end(),
                         [&](const auto& launcher) { return contains((*launcher)->out(), text); });
    }));
  }

  std::vector<ProcessResult> wait() {
    std::vector<ProcessResult> results;
    for (auto& launcher : launchers) results.push_back((*launcher)->wait(kLimit));
    return results;
  }

  const int count, restarts, least;
  const std::string timeout;  // in milliseconds
  const std::vector<std::string> steps;
  const FreePort held{true};
  const int port = held.number;
  std::vector<std::unique_ptr<FakeJob>> launchers;
};

// All launchers end with this code, and a last line that begins and ends so.
void check_last_lines(JobOfNodes& job, int code, const std::string& begin, const std::string& end) {
  for (const auto& result : job.wait()) {
    CHECK(result.code == code);
    CHECK_MESSAGE(final_line(result.err).starts_with(begin), result.err);
    CHECK_MESSAGE(final_line(result.err).ends_with(end), result.err);
  }
}

TEST_CASE("the ranks of all nodes are numbered in order, and meet; nodes may have different numbers of ranks") {
  JobOfNodes job({2, 1}, {"*:train=3", "*:show=DDPRUN_RANK", "*:show=DDPRUN_LOCAL_RANK", "*:show=DDPRUN_WORLD_SIZE"});
  const auto results = job.wait();
  for (const auto& result : results) CHECK_MESSAGE(result.code == 0, result.err);
  for (const std::string line :
       {"DDPRUN_RANK=0\n", "DDPRUN_LOCAL_RANK=0\n", "DDPRUN_WORLD_SIZE=3\n", "[rank1] DDPRUN_RANK=1\n"}) {
    CHECK(contains(results[0].out, line));
  }
  CHECK(contains(results[0].out, "[rank1] DDPRUN_LOCAL_RANK=1\n"));
  CHECK(results[1].out == "[rank2] DDPRUN_RANK=2\n[rank2] DDPRUN_LOCAL_RANK=0\n[rank2] DDPRUN_WORLD_SIZE=3\n");
  for (const auto& launcher : job.launchers) CHECK(launcher->folder_gone());
}

TEST_CASE("a failure of a rank ends all nodes, and all name it") {
  JobOfNodes job({1, 2}, {"*:train=3", "2:report=1,the disk is full", "2:exit=1", "*:hang"});
  for (const auto& result : job.wait()) {
    CHECK(result.code == 1);
    CHECK(final_line(result.err).starts_with("ddprun: failed: rank 2 ("));
    CHECK(final_line(result.err).ends_with("step 3 phase allreduce bucket 0: the disk is full"));
    CHECK(result.elapsed < kSlack);
  }
}

TEST_CASE("a rank that is killed is the first cause, though a rank of another node reports first that it lost it") {
  JobOfNodes job({1, 1}, {"*:train=2", "0:report=5,lost rank 1", "1:sleep=20", "1:signal=9", "*:hang"});
  for (const auto& result : job.wait()) {
    CHECK(result.code == 5);
    CHECK(contains(final_line(result.err), "rank 1 ("));
    CHECK(contains(final_line(result.err), "killed by signal 9"));
  }
}

TEST_CASE("a node whose launcher is killed is lost for the others") {
  JobOfNodes job({1, 2}, {"*:train=2", "*:print=trained", "*:hang"});
  job.wait_for_text("trained");
  (*job.launchers[1])->send(SIGKILL);
  const auto result = (*job.launchers[0])->wait(kLimit);
  CHECK(result.code == 5);
  CHECK(contains(final_line(result.err), "ddprun: failed: ranks 1 and 2 ("));
  CHECK(contains(final_line(result.err), "lost: the connection has ended"));
}

TEST_CASE("a node whose launcher stops is lost within seconds") {
  JobOfNodes job({1, 1}, {"*:train=2", "*:print=trained", "*:hang"});
  job.wait_for_text("trained");
  (*job.launchers[1])->send(SIGSTOP);
  const auto begin = std::chrono::steady_clock::now();
  const auto result = (*job.launchers[0])->wait(kLimit);
  MESSAGE("lost after ", std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin).count(),
          " ms");
  CHECK(result.code == 5);
  CHECK(contains(final_line(result.err), "rank 1 ("));
  CHECK(contains(final_line(result.err), "lost"));
  (*job.launchers[1])->send(SIGCONT);
  const auto other = (*job.launchers[1])->wait(kLimit);
  CHECK(other.code == 5);
}

TEST_CASE("a signal at one launcher stops the ranks of all nodes") {
  JobOfNodes job({1, 1}, {"*:train=2", "*:print=trained", "*:train=1000000"});
  job.wait_for_text("trained");
  (*job.launchers[1])->send(SIGTERM);
  const auto results = job.wait();
  for (const auto& result : results) CHECK_MESSAGE(result.code == 143, result.err);
}

TEST_CASE("after a failure all nodes start again") {
  TempDir once;
  JobOfNodes job({1, 1}, {"*:train=2", "1:first=" + once.path().string() + "/failed,signal=9", "*:print=done"}, 1);
  const auto results = job.wait();
  for (const auto& result : results) {
    CHECK_MESSAGE(result.code == 0, result.err);
    CHECK(contains(result.err, "rank 1 ("));
    CHECK(contains(result.err, "ddprun: restart 1 of 1"));
  }
  CHECK(contains(results[0].out, "done\n"));
}

TEST_CASE("a lost node that comes back is part of the restart") {
  TempDir once;
  const std::string mark = once.path().string() + "/started";
  JobOfNodes job({1, 1}, {"*:train=2", "0:first=" + mark + ",hang", "1:first=" + mark + "1,hang", "*:print=done"}, 1);
  REQUIRE(eventually([&] { return fs::exists(mark) && fs::exists(mark + "1"); }));
  (*job.launchers[1])->send(SIGKILL);
  (*job.launchers[1])->wait(kLimit);
  job.start(1, 1);
  for (const auto& result : job.wait()) {
    CHECK_MESSAGE(result.code == 0, result.err);
    CHECK(contains(result.out, "done"));
  }
}

TEST_CASE("a rank of another node that holds the job up is named while the job runs") {
  JobOfNodes job({1, 1}, {"*:train=2", "0:at=7,3", "0:sleep=9000", "1:sleep=9000"});
  const auto results = job.wait();
  for (const auto& result : results) CHECK_MESSAGE(result.code == 0, result.err);
  // Rank 1 is in the allreduce of step 2, and rank 0 in that of step 7.
  CHECK_MESSAGE(contains(results[0].err, "ddprun: rank 1 ("), results[0].err);
  CHECK(contains(results[0].err, ") has been in step 2 phase allreduce bucket 0 for"));
  CHECK(contains(results[0].err, "; 1 rank waits in step 7 phase allreduce bucket 3"));
}

TEST_CASE("a node that is missing is named") {
  const std::string port = std::to_string(FreePort().number);  // free again before the launcher listens
  FakeJob alone(1, {"*:print=started"}, false, "-", "60000",
                {"FAKE_JOB_NODE=0:2:" + port + ":0", "FAKE_JOB_TIMEOUT=300"});
  const auto result = alone->wait(kLimit);
  CHECK(result.code == 4);
  CHECK_MESSAGE(contains(result.err, "waited 300 ms for all 2 nodes; these --node-rank did not come: 1"), result.err);
}

TEST_CASE("in a job that survives, all nodes name the dead rank, and the ranks of all learn which go on") {
  JobOfNodes job({2, 2}, {"*:at=57,2", "0:set=began", "2:get=began", "2:signal=9", "*:get=members/1"}, 0, 2);
  check_last_lines(job, 0, "ddprun: rank 2 (", "killed by signal 9 (SIGKILL); 3 ranks go on");
}

TEST_CASE("a job that survives goes on without a node that is killed, and without one that leaves") {
  for (const int signal : {SIGKILL, SIGUSR1}) {
    JobOfNodes job({1, 1}, {"*:at=3,0", "*:print=trains", "*:get=members/1"}, 0, 1);
    job.wait_for_text("trains");
    ::kill((*job.launchers[1])->pid(), signal);
    const auto results = job.wait();
    CHECK(results[0].code == 0);
    CHECK_MESSAGE(final_line(results[0].err).ends_with("; 1 rank goes on"), results[0].err);
    if (signal == SIGKILL) continue;
    CHECK_MESSAGE(contains(results[0].err, " leaves the job, which goes on without its ranks"), results[0].err);
    CHECK(results[1].code == 143);
    CHECK(final_line(results[1].err) == "ddprun: terminated; this host has left the job");
  }
}

TEST_CASE("a node that comes back starts ranks that join the others") {
  JobOfNodes job({1, 1}, {"*:at=3,0", "*:print=trains", "*:get=members/2"}, 0, 2);
  job.wait_for_text("trains");
  ::kill((*job.launchers[1])->pid(), SIGKILL);
  REQUIRE(eventually([&] { return contains((*job.launchers[0])->err(), "; 1 rank waits until 2 hosts are there"); }));
  job.start(1, 1);
  const auto results = job.wait();
  for (const auto& result : results) {
    CHECK(result.code == 0);
    CHECK_MESSAGE(final_line(result.err).ends_with(") has been started again; 2 ranks go on"), result.err);
  }
  CHECK(contains(results[1].out, "replaces a rank"));
}

TEST_CASE("a job that survives ends with the loss of node 0; it saves if too few nodes are left for too long") {
  for (const auto& [killed, left] : {std::pair{std::size_t{0}, std::size_t{1}}, {1, 0}}) {
    CAPTURE(killed);
    JobOfNodes job({1, 1}, {"*:at=3,0", "*:print=trains", "*:stop", "*:print=saves"}, 0, killed == 0 ? 1 : 2, "6000");
    job.wait_for_text("trains");
    ::kill((*job.launchers[killed])->pid(), SIGKILL);
    const auto results = job.wait();
    CHECK(results[left].code == 5);
    CHECK(contains(results[left].out, "saves") == (killed == 1));
    CHECK_MESSAGE(final_line(results[left].err).starts_with("ddprun: failed: rank " + std::to_string(killed) + " ("),
                  results[left].err);
  }
}

TEST_CASE("a user who stops a job that has given up waiting lets it save, and it does not start again") {
  JobOfNodes job({1, 1}, {"*:at=3,0", "*:print=trains", "*:stop", "*:print=saves", "*:sleep=1500"}, 1, 2, "6000");
  job.wait_for_text("trains");
  ::kill((*job.launchers[1])->pid(), SIGKILL);
  REQUIRE(eventually([&] { return contains((*job.launchers[0])->out(), "saves"); }));
  ::kill((*job.launchers[0])->pid(), SIGTERM);
  const auto result = job.wait()[0];
  CHECK(result.code == 143);
  CHECK_FALSE(contains(result.err, "the ranks were killed"));
  CHECK_FALSE(contains(result.err, "ddprun: restart"));
}

TEST_CASE("in a job that survives, a stop of node 0 stops the ranks of all nodes") {
  JobOfNodes job({1, 1}, {"*:at=3,0", "*:print=trains", "*:stop", "*:print=saves"}, 0, 1);
  job.wait_for_text("trains");
  ::kill((*job.launchers[0])->pid(), SIGTERM);
  for (const auto& result : job.wait()) {
    CHECK(result.code == 143);
    CHECK(contains(result.out, "saves"));
    CHECK(final_line(result.err) == "ddprun: terminated; all ranks stopped");
  }
}

TEST_CASE("if all ranks of all nodes die, all nodes report the last death") {
  JobOfNodes job({1, 1}, {"*:at=3,0", "*:sleep=300", "*:signal=9"}, 0, 1);
  check_last_lines(job, 5, "ddprun: failed: rank ", "killed by signal 9 (SIGKILL)");
}

}  // namespace
