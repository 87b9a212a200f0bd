// --nnodes 1:1: training goes on after ranks have died, and computes the same weights, bit for bit.
#include <doctest/doctest.h>

#include <csignal>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"
#include "e2e/virtual_ranks.hpp"

using namespace ddprun::e2e;
using ddprun::testing::contains;

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

  // The run that has just ended is as one without deaths.
  void check(const ProcessResult& result, const More& more, int world) {
    INFO(result.err);
    REQUIRE(result.code == 0);
    const std::filesystem::path run = place_.new_run();
    const auto summary = summary_of(run);
    for (const char* key : {"weights.sha256", "test.loss", "test.accuracy", "epochs"}) {
      CAPTURE(key);
      CHECK(summary.at(key) == expected(more).at(key));
    }
    CHECK(summary.at("world") == world);
    CHECK(json_lines(run / "epochs.jsonl").size() == summary.at("epochs"));
    CHECK(place_.leftovers().empty());
  }

 private:
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
      runs.check(result, over, 3);
      CHECK(contains(result.err, "killed by signal 9 (SIGKILL); 3 ranks go on"));
      CHECK(contains(result.err + result.out, "3 ranks go on after step " + std::to_string(step - 1) + ", "));
    }
  }
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

TEST_CASE("what cannot survive a death is refused by its key") {
  Runs runs;
  const auto refused = [&](const More& more, const std::string& text, const std::string& nodes = "1:1") {
    const auto result = runs.run(more, nodes);
    CHECK(result.code == 2);
    CHECK_MESSAGE(contains(result.err, text), result.err);
  };
  refused({"strategy.virtual_ranks=0"}, "strategy.virtual_ranks = 0: with --nnodes 1:1 the ranks that are left need");
  refused({"strategy.zero=1"}, "strategy.zero = 1: with --nnodes 1:1 must be 0");
  refused({"strategy.broadcast_buffers=false"}, "strategy.broadcast_buffers = false: with --nnodes 1:1 must be true");
  refused({"train.amp=fp16"}, "train.amp = \"fp16\": with --nnodes 1:1 cannot be \"fp16\"");
  refused({}, "--nnodes: Value 1:2 not in range", "1:2");
}
