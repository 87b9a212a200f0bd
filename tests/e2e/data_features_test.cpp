// Runs with standardisation, curriculum and load balance.
#include <doctest/doctest.h>

#include <fstream>

#include "data/standardize.hpp"
#include "e2e/program.hpp"
#include "e2e/run_files.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

const std::string kSimplenet = R"(
[launch]
threads = 1
[model]
name = "simplenet"
options = { hidden = 16 }
[data]
name = "synthetic"
batch_size = 24
options = { shape = "2x4x4", classes = 4, samples = 230, test_samples = 48 }
[optimizer]
lr = 0.05
momentum = 0.9
[train]
epochs = 2
)";

struct Runs {
  Workplace place;
  std::string config = place.config(kSimplenet);

  ProcessResult start(const std::vector<std::string>& settings) { return place.run(place.training(config, settings)); }
  std::filesystem::path train(const std::vector<std::string>& settings) {
    const auto result = start(settings);
    INFO(result.err);
    REQUIRE(result.code == 0);
    output = result.err;
    return place.new_run();
  }
  std::string output;
};

const std::vector<std::string> kTwoRanks = {"strategy.kind=ddp", "launch.nproc=2", "data.last=exact"};

std::vector<std::string> with(std::vector<std::string> settings, const std::vector<std::string>& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

TEST_CASE("a standardised run saves its means and deviations, equal for any number of ranks") {
  Runs runs;
  const auto single = runs.train({"data.standardize=true"});
  const auto file = ddprun::checkpoint::read_safetensors(commits_of(single).back().path);
  const auto by = ddprun::data::read_standardization(file.metadata.at("standardize"));
  REQUIRE(by.mean.size() == 2);  // one per channel
  for (const double deviation : by.deviation) CHECK(deviation > 0);
  const auto plain = runs.train({});
  CHECK(losses_of(plain, 1) != losses_of(single, 1));
  const auto pair = runs.train(with(kTwoRanks, {"data.standardize=true"}));
  CHECK(ddprun::checkpoint::read_safetensors(commits_of(pair).back().path).metadata.at("standardize") ==
        file.metadata.at("standardize"));
  // A resumed run reads it from the checkpoint.
  const auto broken = runs.train({"data.standardize=true", "train.steps=13"});
  const auto resumed = runs.train({"data.standardize=true", "train.epochs=2", "checkpoint.resume=" + broken.string()});
  CHECK(weights_of(resumed) == weights_of(single));
}

TEST_CASE("a curriculum draws from the easiest first, on one rank and on two") {
  Runs runs;
  {
    std::ofstream scores(runs.place.folder() / "scores.txt");
    for (int i = 0; i < 230; ++i) scores << i << "\n";
  }
  const std::vector<std::string> curriculum = {"data.sampler=curriculum",
                                               "data.difficulty=" + (runs.place.folder() / "scores.txt").string(),
                                               "data.curriculum_start=0.2", "data.curriculum_epochs=1"};
  const auto single = runs.train(curriculum);
  const auto pair = runs.train(with(kTwoRanks, curriculum));
  CHECK(distance(losses_of(single, 1), losses_of(pair, 2)) < 1e-5);
  // The few samples of synthetic noise in the first epoch can be memorised, all of them cannot.
  const auto epochs = json_lines(single / "epochs.jsonl");
  CHECK(epochs[0].at("train.loss") < epochs[1].at("train.loss"));
  CHECK(runs.start({"data.sampler=curriculum"}).code == 0);  // by magnitude
}

TEST_CASE("missing, too few or invalid scores of a curriculum are reported before any rank starts") {
  Runs runs;
  const std::string scores = (runs.place.folder() / "scores.txt").string();
  const auto check_refused = [&](const std::string& what) {
    const std::vector<std::string> settings = with(kTwoRanks, {"data.sampler=curriculum", "data.difficulty=" + scores});
    std::vector<std::string> checked = {"validate", runs.config};
    for (const std::string& setting : settings) checked.insert(checked.end(), {"--set", setting});
    const std::string line =
        "--set data.difficulty=" + scores + ": data.difficulty = \"" + scores + "\": " + scores + what + "\n";
    for (const auto& result : {runs.place.ddprun(checked), runs.start(settings)}) {
      CHECK(result.code == 2);
      CHECK(result.err.ends_with(line));
      CHECK_MESSAGE(!contains(result.err, "rank"), result.err);
    }
    CHECK_FALSE(std::filesystem::exists(runs.place.runs()));
  };
  check_refused(": No such file or directory; give \"magnitude\" or a file of scores");
  runs.place.config("1\n2\n", "scores");
  std::filesystem::rename(runs.place.folder() / "scores.toml", scores);
  check_refused(": has 2 lines, and there are 230 training samples");
  std::ofstream(scores) << "1\nhard\n";
  check_refused(":2: expected one number");
}

TEST_CASE("batch weights change which rank computes a sample, not the results") {
  Runs runs;
  const auto equal = runs.train(kTwoRanks);
  const auto unequal = runs.train(with(kTwoRanks, {"data.batch_weights=[2, 1]"}));
  CHECK(steps_of(unequal, 0)[0].at("samples") == 16);
  CHECK(steps_of(unequal, 1)[0].at("samples") == 8);
  CHECK(distance(losses_of(equal, 2), losses_of(unequal, 2)) < 1e-5);
  CHECK(distance(weights_of(equal), weights_of(unequal)) < 1e-5);
  CHECK(summary_of(unequal).at("samples_per_rank") == nlohmann::json({16, 8}));
  CHECK_FALSE(summary_of(equal).contains("samples_per_rank"));
}

TEST_CASE("measured batch weights are reported, used from the next step on, and kept by a resumed run") {
  Runs runs;
  const auto settings = with(kTwoRanks, {"data.balance_steps=3"});
  const auto equal = runs.train(kTwoRanks);
  const auto balanced = runs.train(with(settings, {"train.steps=14"}));
  const auto per_rank = summary_of(balanced).at("samples_per_rank");
  CHECK(per_rank[0].get<int>() + per_rank[1].get<int>() == 24);
  CHECK(contains(runs.output,
                 "samples of a step by the ranks' speeds: " + per_rank[0].dump() + ", " + per_rank[1].dump()));
  for (const int rank : {0, 1}) {
    const auto steps = steps_of(balanced, rank);
    for (const std::size_t step : {0, 1, 2}) CHECK(steps[step].at("samples") == 12);
    CHECK(steps[3].at("samples") == per_rank[static_cast<std::size_t>(rank)]);
  }
  const auto resumed = runs.train(with(settings, {"train.epochs=2", "checkpoint.resume=" + balanced.string()}));
  CHECK(summary_of(resumed).at("samples_per_rank") == per_rank);
  CHECK(steps_of(resumed, 0)[0].at("samples") == per_rank[0]);
  CHECK(distance(weights_of(resumed), weights_of(equal)) < 1e-5);
}

}  // namespace
