// Runs with standardisation and load balance.
#include <doctest/doctest.h>

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
  CHECK_FALSE(summary_of(equal).contains("samples_per_rank"));
}

// The samples of the first epoch, of all ranks.
int64_t samples_of_epoch(const std::filesystem::path& run, int world) {
  int64_t samples = 0;
  for (int rank = 0; rank < world; ++rank) {
    for (const auto& step : steps_of(run, rank))
      samples += step.at("epoch") == 1 ? step.at("samples").get<int64_t>() : 0;
  }
  return samples;
}

TEST_CASE("a validation set is not trained on, and is the same for any strategy and number of ranks") {
  Runs runs;
  const std::vector<std::string> split = {"data.validation=0.13"};  // 29 of 230 samples
  const auto single = runs.train(split);
  CHECK(contains(runs.output, "201 training samples, 29 validation samples, 48 test samples"));
  CHECK(contains(runs.output, "; validation loss "));
  CHECK(samples_of_epoch(single, 1) == 201);
  const auto figures = [](const std::filesystem::path& run) {
    std::vector<double> values;
    for (const auto& epoch : json_lines(run / "epochs.jsonl")) {
      for (const char* key : {"validation.loss", "validation.accuracy", "test.loss"}) {
        values.push_back(epoch.at(key).get<double>());
      }
    }
    REQUIRE(summary_of(run).at("validation.loss") == values[3]);
    return values;
  };
  const auto expected = figures(single);
  CHECK(expected[0] != expected[2]);
  const auto dp = runs.train(with(split, {"strategy.kind=dp", "strategy.devices=2"}));
  CHECK(distance(figures(dp), expected) < 1e-5);
  // Each way to end an epoch, with 2 and with 3 ranks.
  for (const int world : {2, 3}) {
    const auto ddp = with(split, {"strategy.kind=ddp", "launch.nproc=" + std::to_string(world)});
    const auto exact = runs.train(with(ddp, {"data.last=exact"}));
    CHECK(samples_of_epoch(exact, world) == 201);
    CHECK(distance(figures(exact), expected) < 1e-5);
    CHECK(distance(weights_of(exact), weights_of(single)) < 1e-5);
    CHECK(samples_of_epoch(runs.train(ddp), world) == (world == 2 ? 202 : 201));
    CHECK(samples_of_epoch(runs.train(with(ddp, {"data.last=drop"})), world) == 192);  // whole batches of 24
  }
  // Two ranks have no validation sample.
  CHECK(
      summary_of(runs.train({"strategy.kind=ddp", "launch.nproc=3", "data.validation=1"})).contains("validation.loss"));
  // A data set that is limited to its first samples.
  CHECK(samples_of_epoch(runs.train({"data.validation=40", "data.options.samples=100"}), 1) == 60);
}

TEST_CASE("a validation set with standardisation, two ranks and a resume within an epoch") {
  Runs runs;
  const std::vector<std::string> settings = {"data.validation=29", "data.standardize=true"};
  const auto ranks = with(kTwoRanks, settings);
  const auto single = runs.train(settings), pair = runs.train(ranks);
  CHECK(distance(losses_of(single, 1), losses_of(pair, 2)) < 1e-5);
  const auto mean_of = [](const std::filesystem::path& run) {
    return ddprun::checkpoint::read_safetensors(commits_of(run).back().path).metadata.at("standardize");
  };
  CHECK(mean_of(single) == mean_of(pair));
  CHECK(mean_of(single) != mean_of(runs.train({"data.standardize=true"})));  // of the training part alone
  const auto broken = runs.train(with(ranks, {"train.steps=13"}));
  const auto resumed = runs.train(with(ranks, {"train.epochs=2", "checkpoint.resume=" + broken.string()}));
  CHECK(weights_of(resumed) == weights_of(pair));
  CHECK(summary_of(resumed).at("validation.loss") == summary_of(pair).at("validation.loss"));
  const auto refused = runs.start(with(ranks, {"data.validation=30", "checkpoint.resume=" + broken.string()}));
  CHECK(refused.code == 2);
  CHECK_MESSAGE(contains(refused.err, "data.validation = 30: the run of "), refused.err);
}

TEST_CASE("a part that leaves nothing to validate or to train on is refused before any rank starts") {
  Runs runs;
  for (const auto& [value, what] :
       {std::pair{"0.004", "leaves no sample to validate on: the training set has 230 samples; use a larger part"},
        {"230", "leaves no sample to train on: the training set has 230 samples; use fewer"}}) {
    const std::string setting = std::string("data.validation=") + value;
    for (const auto& result : {runs.place.ddprun({"validate", runs.config, "--set", setting}),
                               runs.start(with(kTwoRanks, {setting})), runs.start({setting})}) {
      CHECK(result.code == 2);
      CHECK_MESSAGE(result.err.ends_with("--set " + setting + ": data.validation = " + value + ": " + what + "\n"),
                    result.err);
    }
  }
  CHECK_FALSE(std::filesystem::exists(runs.place.runs()));
}

TEST_CASE("the log says that the test set chooses, and not if the validation set does") {
  Runs runs;
  runs.train({"train.early_stop=test.loss", "checkpoint.best=test.accuracy"});
  CHECK(contains(runs.output,
                 "the test set chooses the epoch (train.early_stop = \"test.loss\" and checkpoint.best = "
                 "\"test.accuracy\"), so its results"));
  const auto run =
      runs.train({"train.early_stop=validation.loss", "checkpoint.best=validation.accuracy", "data.validation=0.2"});
  CHECK_FALSE(contains(runs.output, "the test set chooses"));
  const auto best = ddprun::checkpoint::read_safetensors((run / "checkpoints" / "best.safetensors").string());
  CHECK(best.metadata.at("best") == "validation.accuracy");
}

TEST_CASE("a metric that the model does not report is refused before any rank starts") {
  Runs runs;
  runs.config = runs.place.config(
      "[model]\nname = \"linear\"\n[data]\nname = \"linear\"\nvalidation = 0.1\n"
      "[train]\nearly_stop = \"validation.accuracy\"\n");
  const std::string line = runs.config +
                           ":7:14: train.early_stop = \"validation.accuracy\": this model has no such metric; use "
                           "\"validation.loss\"\n";
  for (const auto& result : {runs.place.ddprun({"validate", runs.config}), runs.start({}), runs.start(kTwoRanks)}) {
    CHECK(result.code == 2);
    CHECK_MESSAGE(result.err.ends_with(line), result.err);
  }
  CHECK_FALSE(std::filesystem::exists(runs.place.runs()));
}

}  // namespace
