// --nnodes LEAST:N: training goes on after ranks or hosts have died, and computes the same weights, bit for bit.
#include <doctest/doctest.h>

#include <csignal>

#include "e2e/nodes.hpp"
#include "e2e/program.hpp"
#include "e2e/run_files.hpp"
#include "e2e/virtual_ranks.hpp"

using namespace ddprun::e2e;
using ddprun::testing::contains, ddprun::testing::eventually;

namespace {

using More = std::vector<std::string>;

// Training takes long enough for a test to kill a rank in the middle of it.
const More kLonger = {"launch.nproc=4", "data.options.samples=2400", "optimizer.name=adam", "optimizer.lr=0.01",
                      "train.epochs=4", "checkpoint.every_epochs=1"};

class Runs {
 public:
  std::vector<std::string> argv(const More& more, const std::string& nodes = "1:1") {
    return place_.training(config_, kLonger + more) + Argv{"--nnodes", nodes};
  }
  ProcessResult run(const More& more, const std::string& nodes = "1:1") { return place_.run(argv(more, nodes)); }

  // Starts a run, and calls `disturb` while it trains.
  ProcessResult disturbed(const More& more, const std::function<void(Job&)>& disturb) {
    Job job(place_, argv(more));
    job.wait_for_steps();
    disturb(job);
    return job.launcher().wait(std::chrono::seconds(120));
  }

  // What a run without deaths has computed.
  const nlohmann::json& expected(const More& more) {
    if (expected_.is_null()) {
      REQUIRE(run(more).code == 0);
      expected_ = summary_of(place_.new_run());
    }
    return expected_;
  }

  Nodes hosts(const More& more, const std::string& nnodes = "1:2", const std::vector<int>& ranks = {2, 2}) {
    return Nodes(place_, config_, ranks, kLonger + more, nnodes);
  }
  // That have just ended.
  void check_hosts(const ProcessResult& result, const More& more, int world) {
    INFO(result.err);
    REQUIRE(result.code == 0);
    check(newest_run(place_, 0), more, world);
    std::filesystem::remove_all(place_.runs());
  }

  std::filesystem::path newest() const { return newest_run(place_, 0); }
  std::filesystem::path new_run() { return place_.new_run(); }  // on one host

  // The run that has just ended is as one without deaths. Returns its summary.
  nlohmann::json check(const ProcessResult& result, const More& more, int world) {
    INFO(result.err);
    REQUIRE(result.code == 0);
    return check(place_.new_run(), more, world);
  }

 private:
  nlohmann::json check(const std::filesystem::path& run, const More& more, int world) {
    const auto summary = summary_of(run);
    for (const char* key : {"weights.sha256", "test.loss", "test.accuracy", "epochs"}) {
      CAPTURE(key);
      CHECK(summary.at(key) == expected(more).at(key));
    }
    CHECK(summary.at("world") == world);
    CHECK(json_lines(run / "epochs.jsonl").size() == summary.at("epochs"));
    CHECK(place_.leftovers().empty());
    return summary;
  }

  Workplace place_;
  std::string config_ = place_.config(kVirtualRanks);
  nlohmann::json expected_;
};

More killed(int rank, int step) {
  return {"faults.kind=kill", "faults.rank=" + std::to_string(rank), "faults.step=" + std::to_string(step)};
}

}  // namespace

TEST_CASE("over each backend, the ranks that are left finish the training of all") {
  for (const std::string backend : {"gloo", "shm", "ucx"}) {
    CAPTURE(backend);
    Runs runs;
    const More over = {"comm.backend=" + backend};
    runs.expected(over);
    // 75 steps an epoch: in the first step, in an epoch, and in the first step of another one.
    for (const auto& [rank, step] : {std::pair{3, 2}, {1, 100}, {0, 151}}) {
      CAPTURE(rank);
      const auto result = runs.run(over + killed(rank, step));
      const auto summary = runs.check(result, over, 3);
      CHECK(summary.at("changes.after_step") == nlohmann::json{step - 1});
      CHECK(summary.at("changes.ranks") == nlohmann::json{3});
      CHECK(summary.at("changes.seconds").at(0) > 0);
      CHECK(contains(result.err, "killed by signal 9 (SIGKILL); 3 ranks go on"));
      CHECK(contains(result.err + result.out, "3 ranks go on after step " + std::to_string(step - 1) + ", "));
    }
  }
}

TEST_CASE("a rank that dies while the others wait for it in a SyncBatchNorm does not end the training") {
  const More over = {"comm.backend=gloo", "model.sync_batch_norm=true"};
  Runs runs;
  runs.expected(over);
  const auto result = runs.disturbed(over, [](Job& job) {
    const auto ranks = job.ranks(4);
    ::kill(ranks.at(2), SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ::kill(ranks.at(0), SIGKILL);
  });
  runs.check(result, over, 2);
}

TEST_CASE("in float16, the ranks that are left have the same weights too") {
  const More over = {"comm.backend=gloo", "train.amp=fp16"};
  Runs runs;
  runs.expected(over);
  runs.check(runs.run(over + killed(1, 100)), over, 3);
}

TEST_CASE("without deaths, random numbers do not depend on the number of ranks either") {
  Runs runs;
  const More over = {"comm.backend=shm"};
  for (const int ranks : {3, 1})
    runs.check(runs.run(over + More{"launch.nproc=" + std::to_string(ranks)}), over, ranks);
}

TEST_CASE("ranks may die at any moment, one after the other, until one is left") {
  const More over = {"comm.backend=shm"};
  Runs runs;
  runs.expected(over);
  const auto result = runs.disturbed(over, [](Job& job) {
    const auto ranks = job.ranks(4);
    for (const int rank : {0, 2, 3}) {
      ::kill(ranks.at(rank), SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  runs.check(result, over, 1);
  CHECK(contains(result.err, "; 1 rank goes on"));
}

TEST_CASE("SIGUSR1 to a rank ends only this rank") {
  const More over = {"comm.backend=gloo"};
  Runs runs;
  runs.expected(over);
  const auto result = runs.disturbed(over, [](Job& job) { ::kill(job.ranks(4).at(2), SIGUSR1); });
  runs.check(result, over, 3);
  CHECK(contains(result.err, "; 3 ranks go on"));
}

// As Slurm sends it, with `--signal=USR1@60`.
TEST_CASE("SIGUSR1 to every process of the job stops the job, with a checkpoint") {
  const More over = {"comm.backend=gloo"};
  const auto send = [](Job& job) {
    for (const pid_t pid : job.descendants()) ::kill(pid, SIGUSR1);
    ::kill(job.launcher().pid(), SIGUSR1);
  };
  Runs runs;
  const auto result = runs.disturbed(over, send);
  CHECK_MESSAGE(result.code == 143, result.err);
  CHECK(contains(result.err, "ddprun: terminated; all ranks stopped"));
  CHECK_FALSE(contains(result.err, "SIGUSR1"));
  CHECK(commits_of(runs.new_run()).back().step > 0);

  Nodes hosts = runs.hosts(over);
  hosts.jobs[0]->wait_for_steps();
  for (const auto& job : hosts.jobs) send(*job);
  for (const auto& each : hosts.wait()) CHECK_MESSAGE(each.code == 143, each.err);
  CHECK(commits_of(runs.newest()).back().step > 0);
}

TEST_CASE("a dead rank is started again and joins the others, whose training goes on meanwhile") {
  const More over = {"comm.backend=gloo", "train.epochs=40"};
  Runs runs;
  runs.expected(over);
  const auto result =
      runs.disturbed(over + More{"launch.max_restarts=1"}, [](Job& job) { ::kill(job.ranks(4).at(1), SIGKILL); });
  runs.check(result, over, 4);
  CHECK(contains(result.err, "3 ranks go on"));
  CHECK(contains(result.err, ") has been started again; 4 ranks go on"));
}

TEST_CASE("over several hosts, the ranks go on without one that dies, and without a host") {
  for (const std::string backend : {"gloo", "ucx"}) {
    CAPTURE(backend);
    const More over = {"comm.backend=" + backend};
    Runs runs;
    runs.expected(over);
    for (const std::string victim : {"rank", "host"}) {
      CAPTURE(victim);
      Nodes hosts = runs.hosts(over);
      hosts.jobs[0]->wait_for_steps();
      ::kill(victim == "host" ? hosts.jobs[1]->launcher().pid() : hosts.jobs[1]->ranks(2).at(3), SIGKILL);
      const auto results = hosts.wait();
      runs.check_hosts(results[0], over, victim == "host" ? 2 : 3);
      CHECK(contains(results[0].err, victim == "host" ? "): lost: " : "killed by signal 9"));
      CHECK(contains(results[1].err, "; 3 ranks go on") == (victim == "rank"));
    }
  }
}

TEST_CASE("a host that leaves is no failure, and the ranks that are left have their states without it") {
  const More over = {"comm.backend=gloo"};
  Runs runs;
  runs.expected(over);
  for (const bool to_all : {false, true}) {  // as systemd, which sends it to the ranks too
    CAPTURE(to_all);
    Nodes hosts = runs.hosts(over);
    hosts.jobs[0]->wait_for_steps();
    const std::vector<pid_t> ranks = to_all ? hosts.jobs[1]->descendants() : std::vector<pid_t>();
    for (const pid_t pid : ranks) ::kill(pid, SIGTERM);
    ::kill(hosts.jobs[1]->launcher().pid(), SIGTERM);
    const auto results = hosts.wait();
    runs.check_hosts(results[0], over, 2);
    CHECK(results[1].code == 143);
    CHECK(contains(results[1].err, "ddprun: terminated; this host has left the job"));
  }
}

TEST_CASE("fewer hosts than the least wait for another one, which gets the state from its peers") {
  const More over = {"comm.backend=gloo"};
  Runs runs;
  runs.expected(over);
  Nodes hosts = runs.hosts(over, "2:2");
  hosts.jobs[0]->wait_for_steps();
  hosts.jobs[1]->launcher().send(SIGKILL);
  const auto waits = [&] { return contains(hosts.jobs[0]->launcher().err(), "2 ranks wait until 2 hosts are there"); };
  REQUIRE(eventually(waits));
  hosts.start(1);
  const auto results = hosts.wait();
  runs.check_hosts(results[0], over, 4);
  CHECK(contains(results[0].err, "; 4 ranks go on"));
}

TEST_CASE("if no other host comes, the ranks that wait save their state before the job ends") {
  const More over = {"comm.backend=gloo", "checkpoint.every_epochs=0", "launch.timeout=5s"};
  Runs runs;
  runs.expected(over);
  Nodes hosts = runs.hosts(over, "3:3", {1, 1, 2});
  hosts.jobs[0]->wait_for_steps();
  hosts.jobs[2]->launcher().send(SIGKILL);
  const auto ended = hosts.wait();
  for (const auto& result : {ended[0], ended[1]}) {
    INFO(result.err);
    CHECK(result.code == 5);
    CHECK(contains(result.err, "ddprun: stopping: the ranks finish a common step and save"));
    CHECK(contains(ddprun::testing::last_line(result.err), "ddprun: failed: ranks 2 and 3 ("));
  }
  Nodes resumed = runs.hosts(over + More{"checkpoint.resume=" + runs.newest().string()}, "2:2");
  const auto results = resumed.wait();
  runs.check_hosts(results[0], over, 4);
  CHECK(contains(results[0].err, "resuming from "));
}

TEST_CASE("a host that comes back with another config does not disturb the others") {
  const More over = {"comm.backend=gloo", "train.epochs=12"};
  Runs runs;
  runs.expected(over);
  Nodes hosts = runs.hosts(over);
  hosts.jobs[0]->wait_for_steps();
  hosts.jobs[1]->launcher().send(SIGKILL);
  REQUIRE(eventually([&] { return contains(hosts.jobs[0]->launcher().err(), "; 2 ranks go on"); }));
  hosts.start(1, {"optimizer.lr=0.5"});
  const auto results = hosts.wait();
  runs.check_hosts(results[0], over, 2);
  CHECK_MESSAGE(contains(results[1].err, "do not run the same experiment: [optimizer] \"lr = 0.01\" and \"lr = 0.5\""),
                results[1].err);
}

TEST_CASE("what cannot survive a death is refused by its key") {
  Runs runs;
  const auto refused = [&](const More& more, const std::string& text, const std::string& nodes = "1:1") {
    const auto result = runs.run(more, nodes);
    CHECK(result.code == 2);
    CHECK_MESSAGE(contains(result.err, text), result.err);
  };
  refused({"strategy.virtual_ranks=0"},
          "strategy.virtual_ranks = 0: with --nnodes LEAST:N the ranks that are left need");
  refused({"strategy.zero=1"}, "strategy.zero = 1: with --nnodes LEAST:N must be 0");
  refused({"strategy.broadcast_buffers=false"},
          "strategy.broadcast_buffers = false: with --nnodes LEAST:N must be true");
  refused({"strategy.hash_every=2"}, "strategy.hash_every = 2: with --nnodes LEAST:N must be 0");
  for (const std::string nodes : {"0:2", "1:", "a:2", "1:2:3"}) {
    refused({}, "--nnodes: Value " + nodes + " not in range", nodes);
  }
  refused({}, "--nnodes 2:1: the first number is the least", "2:1");
}
