// Ranks that torchrun starts join one another, and give the results of ddprun's launcher.
#include <doctest/doctest.h>

#include <cstdlib>
#include <iostream>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

const std::string kImages = R"(
[launch]
threads = 1
[comm]
algorithm = "ring"
[strategy]
kind = "ddp"
[model]
name = "simplenet"
options = { hidden = 32 }
[data]
name = "synthetic"
batch_size = 24
options = { shape = "1x28x28", classes = 10, samples = 240, test_samples = 48 }
)";

std::vector<std::string> under_torchrun(const std::vector<std::string>& argv, const std::string& restarts = "0") {
  if (!std::filesystem::exists(TORCHRUN)) {
    std::cout << "skipped: there is no torchrun at " TORCHRUN "\n";
    std::exit(77);
  }
  std::vector<std::string> command = {TORCHRUN, "--standalone", "--nproc-per-node=2", "--max-restarts=" + restarts,
                                      "--no-python"};
  command.insert(command.end(), argv.begin(), argv.end());
  return command;
}

TEST_CASE("ranks of torchrun equal those of ddprun's launcher bit for bit, in one run folder with a log for each") {
  Workplace place;
  const std::string config = place.config(kImages);
  const auto outside = place.run(under_torchrun(place.training(config)));
  REQUIRE_MESSAGE(outside.code == 0, outside.err);
  const auto torchrun_run = place.new_run();
  const auto own = place.run(place.training(config, {"launch.nproc=2"}));
  REQUIRE_MESSAGE(own.code == 0, own.err);
  const auto ddprun_run = place.new_run();
  CHECK(losses_of(torchrun_run, 2) == losses_of(ddprun_run, 2));
  CHECK(weights_of(torchrun_run) == weights_of(ddprun_run));
  CHECK(summary_of(torchrun_run).at("world") == 2);
  CHECK(summary_of(torchrun_run).at("test.loss") == summary_of(ddprun_run).at("test.loss"));
  CHECK(contains(read_file(torchrun_run / "rank0.log"), "epoch 1 done"));
  CHECK(std::filesystem::exists(torchrun_run / "rank1.log"));
  CHECK(contains(outside.out, "run folder: " + torchrun_run.string()));
  CHECK(outside.out.find("test loss") == outside.out.rfind("test loss"));  // only on rank 0
  CHECK_MESSAGE(!contains(outside.err, "c10d"), outside.err);              // a warning of TCPStore
}

TEST_CASE("torchrun names the rank that failed first, and shows its error") {
  Workplace place;
  const auto result = place.run(
      under_torchrun(place.training(place.config(kImages), {"faults.kind=throw", "faults.rank=1", "faults.step=3"})));
  CHECK(result.code == 1);
  const std::string cause = result.err.substr(std::min(result.err.find("Root Cause"), result.err.size()));
  CHECK_MESSAGE(contains(cause, "rank      : 1 (local_rank: 1)"), result.err);
  CHECK_MESSAGE(contains(cause, "exitcode  : 1 "), result.err);
  CHECK_MESSAGE(contains(cause, "traceback : rank 1 step 3 phase forward: faults.kind = \"throw\": "), result.err);
  CHECK_MESSAGE(!contains(result.err, "c10d"), result.err);
}

TEST_CASE("a fault of [faults] does not come back after torchrun has restarted the ranks") {
  Workplace place;
  const auto result = place.run(under_torchrun(
      place.training(place.config(kImages), {"faults.kind=kill", "faults.rank=1", "faults.step=3"}), "2"));
  CHECK_MESSAGE(result.code == 0, result.err);
  const std::size_t first = result.err.find("makes the fault");
  CHECK_MESSAGE(first != std::string::npos, result.err);
  CHECK_MESSAGE(first == result.err.rfind("makes the fault"), result.err);
}

TEST_CASE(
    "a run resumes under torchrun, from the newest and from a named commit, and equals one that was never stopped") {
  Workplace place;
  const std::string config = place.config(kImages);
  const auto settings = [](std::vector<std::string> more) {
    more.insert(more.end(), {"optimizer.lr=0.01", "optimizer.momentum=0.9", "checkpoint.best=test.loss"});
    return more;
  };
  const auto own = place.run(place.training(config, settings({"train.epochs=3", "launch.nproc=2"})));
  REQUIRE_MESSAGE(own.code == 0, own.err);
  const auto whole = place.new_run();
  const auto train = [&](const std::vector<std::string>& more) {
    const auto result = place.run(under_torchrun(place.training(config, settings(more))));
    REQUIRE_MESSAGE(result.code == 0, result.err);
    return std::pair(result.err, place.new_run());
  };
  // To the middle of the second epoch, to its end, and to the end of the run.
  const auto first = train({"train.steps=14"}).second;
  const auto [log, second] = train({"train.steps=20", "checkpoint.resume=latest"});
  CHECK_MESSAGE(contains(log, "resuming from " + commits_of(first).back().path), log);
  CHECK(log.find("resuming from") == log.rfind("resuming from"));
  const auto third = train({"train.epochs=3", "checkpoint.resume=" + second.string()}).second;
  std::vector<double> losses;
  for (const auto& run : {first, second, third}) {
    for (const double loss : losses_of(run, 2)) losses.push_back(loss);
  }
  CHECK(losses == losses_of(whole, 2));
  CHECK(weights_of(third) == weights_of(whole));
  CHECK(summary_of(third).at("best.epoch") == summary_of(whole).at("best.epoch"));
}

TEST_CASE("a checkpoint that cannot be resumed is refused under torchrun, in one line of each rank") {
  Workplace place;
  const auto none = place.run(under_torchrun(place.training(place.config(kImages), {"checkpoint.resume=latest"})));
  CHECK_MESSAGE(contains(none.err, "no run of \"exp\" with a checkpoint lies in "), none.err);
  CHECK_MESSAGE(contains(none.err, "exitcode  : 2"), none.err);
  CHECK_FALSE(std::filesystem::exists(place.runs()));
}

TEST_CASE("a world of torchrun that contradicts launch.nproc is an error that names both") {
  Workplace place;
  const auto result = place.run(under_torchrun(place.training(place.config(kImages), {"launch.nproc=3"})));
  CHECK(result.code != 0);
  CHECK_MESSAGE(contains(result.err, "launch.nproc"), result.err);
  CHECK_MESSAGE(contains(result.err, "exitcode  : 4"), result.err);  // torchrun's own report of the first failure
  CHECK_FALSE(std::filesystem::exists(place.runs()));
}

TEST_CASE("ranks that run different experiments report the first difference before they train") {
  Workplace place;
  const std::string config = place.config(kImages);
  const std::string command = "exec " + place.training(config)[0] + " --config " + config +
                              " --set experiment.output=" + place.runs().string() + " --set optimizer.lr=0.0$RANK";
  const auto result = place.run(under_torchrun({"/bin/sh", "-c", command}));
  CHECK_MESSAGE(contains(result.err,
                         "rank 0 and rank 1 do not run the same experiment: [optimizer] \"lr = 0\" and \"lr = 0.01\""),
                result.err);
  CHECK_MESSAGE(contains(result.err, "exitcode  : 4"), result.err);
  CHECK_FALSE(std::filesystem::exists(place.runs()));
}

TEST_CASE("strategy single is refused with several ranks") {
  Workplace place;
  const auto result = place.run(under_torchrun(place.training(place.config(kImages), {"strategy.kind=single"})));
  CHECK_MESSAGE(contains(result.err, "trains in one process, and 2 were started"), result.err);
  CHECK_MESSAGE(contains(result.err, "exitcode  : 2"), result.err);
}

}  // namespace
