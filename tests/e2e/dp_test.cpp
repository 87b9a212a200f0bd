// One process with a replica on each device gives the results of one process without replicas.
#include <doctest/doctest.h>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"
#include "support/paths.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

const std::string kSimplenet = R"(
[launch]
threads = 1
[model]
name = "simplenet"
[data]
name = "synthetic"
batch_size = 24
options = { shape = "1x28x28", classes = 10, samples = 250, test_samples = 50 }
[optimizer]
lr = 0.05
momentum = 0.9
)";

const std::string kResnet = R"(
[launch]
threads = 1
[model]
name = "resnet18"
options = { stem = "small" }
[data]
name = "synthetic"
batch_size = 6
options = { shape = "3x32x32", classes = 10, samples = 12, test_samples = 6 }
)";

struct Trained {
  std::vector<double> losses;
  Weights weights;
  nlohmann::json summary;
  std::vector<nlohmann::json> steps;
  std::string out, err;
};

Trained train(Workplace& place, const std::string& config, const std::vector<std::string>& overrides) {
  const auto result = place.run(place.training(config, overrides));
  INFO(result.err);
  REQUIRE(result.code == 0);
  const auto run = place.new_run();
  return {losses_of(run, 1), weights_of(run), summary_of(run), steps_of(run, 0), result.out, result.err};
}

std::vector<std::string> dp(int devices, std::vector<std::string> more = {}) {
  more.insert(more.end(), {"strategy.kind=dp", "strategy.devices=" + std::to_string(devices)});
  return more;
}

TEST_CASE("the shipped linear has the losses of strategy single, and learns 2 x + 3") {
  Workplace place;
  const std::string folder = source_dir() + "/configs/linear_";
  const Trained single = train(place, folder + "single.toml", {"launch.threads=1", "train.epochs=4"});
  const Trained replicated = train(place, folder + "dp.toml", {"train.epochs=4"});
  CHECK(distance(single.losses, replicated.losses) < 1e-5);
  CHECK(std::abs(replicated.summary.at("learned.weight").get<double>() - 2) < 0.05);
}

TEST_CASE("simplenet has the losses and weights of strategy single on any number of devices") {
  Workplace place;
  const auto config = place.config(kSimplenet);
  const Trained single = train(place, config, {});
  for (const int devices : {1, 2, 3, 5}) {
    CAPTURE(devices);
    const Trained replicated = train(place, config, dp(devices));
    CHECK(distance(single.losses, replicated.losses) < 1e-5);
    CHECK(distance(single.weights, replicated.weights) < 1e-5);
    CHECK(replicated.summary.at("test.loss").get<double>() ==
          doctest::Approx(single.summary.at("test.loss").get<double>()).epsilon(1e-5));
    CHECK(replicated.summary.at("devices") == devices);
    CHECK(replicated.summary.at("strategy") == "dp");
    CHECK(replicated.summary.at("world") == 1);
  }
}

TEST_CASE("two runs are equal bit for bit, on several threads per device too") {
  Workplace place;
  const auto config = place.config(kSimplenet);
  const auto weights = [&] { return train(place, config, dp(2, {"launch.threads=4"})).weights; };
  CHECK(weights() == weights());
}

TEST_CASE("a run reports the time of transfers between the devices") {
  Workplace place;
  const Trained replicated = train(place, place.config(kSimplenet), dp(2, {"launch.threads=5"}));
  for (const std::string part : {"replicate", "scatter", "gather", "reduce"}) {
    CAPTURE(part);
    CHECK(replicated.summary.at("split." + part).get<double>() > 0);
    CHECK(replicated.steps.front().at(part).get<double>() > 0);
    CHECK(contains(replicated.out, "\n    " + part + " "));
  }
  CHECK_FALSE(replicated.summary.contains("memory_by_device"));  // GPUs only
  CHECK(contains(replicated.err, "cpu, 2 devices of 2 threads"));
  CHECK(contains(replicated.err, " in all, at most "));
}

TEST_CASE("with BatchNorm the statistics, and so the losses, differ from strategy single") {
  Workplace place;
  const auto config = place.config(kResnet);
  const auto losses = [&](const std::vector<std::string>& overrides) {
    const auto result = place.run(place.training(config, overrides));
    INFO(result.err);
    REQUIRE(result.code == 0);
    return losses_of(place.new_run(), 1);
  };
  const auto replicated = losses(dp(2));
  CHECK(distance(losses({}), replicated) > 1e-3);
  CHECK(losses(dp(1)) == losses({}));
  CHECK(losses(dp(2)) == replicated);
}

TEST_CASE("a resumed run ends as one that was never stopped") {
  Workplace place;
  const auto config = place.config(kSimplenet);
  const Trained whole = train(place, config, dp(2, {"train.epochs=2"}));
  train(place, config, dp(2, {"train.epochs=1"}));
  const Trained second = train(place, config, dp(2, {"train.epochs=2", "checkpoint.resume=latest"}));
  CHECK(second.losses.size() == whole.losses.size() / 2);
  CHECK(distance(second.weights, whole.weights) == 0);
}

TEST_CASE("keys of ddp are reported as unused, and a second process is refused") {
  Workplace place;
  std::string text = kSimplenet;
  const auto config = place.config(text.insert(text.find("threads"), "nproc = 4\n"));
  CHECK(contains(train(place, config, dp(2, {"strategy.bucket_cap_mb=3"})).err,
                 "not used by strategy \"dp\" on device \"cpu\": launch.nproc, strategy.bucket_cap_mb"));
  std::vector<std::string> argv = {
      "/usr/bin/env",          "RANK=0",       "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=2",
      "MASTER_ADDR=127.0.0.1", "MASTER_PORT=1"};
  for (const std::string& word : place.training(config, dp(2))) argv.push_back(word);
  const auto refused = place.run(argv);
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, "strategy.kind = \"dp\": trains in one process, and 2 were started; use"));
}

}  // namespace
