// train.channels_last: another memory format, with the same results.
#include <doctest/doctest.h>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"

using namespace ddprun::e2e;
using ddprun::testing::contains;

namespace {

// Two steps, before different rounding has grown.
const std::string kImages = R"(
[launch]
threads = 1
[model]
name = "resnet18"
options = { stem = "small" }
[data]
name = "synthetic"
batch_size = 8
sampler = "distributed"
options = { shape = "3x16x16", classes = 4, samples = 16, test_samples = 10 }
[optimizer]
lr = 0.01
)";

struct Trained {
  std::vector<double> losses;
  double test_loss = 0;
  std::map<std::string, std::string> tensors;  // of the checkpoint, as bytes
  std::string run;
};

Trained train(Workplace& place, const std::string& config, const std::vector<std::string>& overrides, int world = 1) {
  const auto result = place.run(place.training(config, overrides));
  INFO(result.err);
  REQUIRE(result.code == 0);
  const auto run = place.new_run();
  return {losses_of(run, world), summary_of(run).at("test.loss"), tensors_of(run), run};
}

TEST_CASE("train.channels_last matches the default memory format, under single, dp and ddp") {
  constexpr double kTolerance = 2e-3;
  Workplace place;
  const std::string config = place.config(kImages);
  const std::string last = "train.channels_last=true";
  const Trained plain = train(place, config, {});
  const Trained single = train(place, config, {last});
  CHECK(distance(single.losses, plain.losses) < kTolerance);
  CHECK(single.test_loss == doctest::Approx(plain.test_loss).epsilon(kTolerance));
  CHECK(single.tensors != plain.tensors);  // sums are in another order

  const Trained ddp = train(place, config, {last, "strategy.kind=ddp", "launch.nproc=2", "strategy.hash_every=1"}, 2);
  const Trained ddp_plain = train(place, config, {"strategy.kind=ddp", "launch.nproc=2"}, 2);
  CHECK(distance(ddp.losses, ddp_plain.losses) < kTolerance);
  CHECK(ddp.test_loss == doctest::Approx(ddp_plain.test_loss).epsilon(kTolerance));

  const Trained dp = train(place, config, {last, "strategy.kind=dp", "strategy.devices=2"});
  const Trained dp_plain = train(place, config, {"strategy.kind=dp", "strategy.devices=2"});
  CHECK(distance(dp.losses, dp_plain.losses) < kTolerance);
  CHECK(dp.test_loss == doctest::Approx(dp_plain.test_loss).epsilon(kTolerance));
}

TEST_CASE("train.channels_last equals resnet18's own option bit for bit, in an evaluation too") {
  Workplace place;
  const std::string config = place.config(kImages);
  const Trained by_train = train(place, config, {"train.channels_last=true"});
  const Trained by_model = train(place, config, {"model.options.memory_format=channels_last"});
  CHECK(by_train.losses == by_model.losses);
  CHECK(by_train.tensors == by_model.tensors);
  CHECK(by_train.test_loss == by_model.test_loss);
  const auto train_result = place.ddprun({"evaluate", "--checkpoint", by_train.run});
  const auto model_result = place.ddprun({"evaluate", "--checkpoint", by_model.run});
  INFO(train_result.err);
  REQUIRE(train_result.code == 0);
  const auto from = [](const std::string& out) { return out.substr(out.find("test accuracy")); };
  CHECK(from(train_result.out) == from(model_result.out));
}

TEST_CASE("train.channels_last is refused for samples that are not images") {
  Workplace place;
  const std::string config = place.config("[model]\nname = \"linear\"\n[data]\nname = \"linear\"\n");
  const auto result = place.ddprun({"validate", config, "--set", "train.channels_last=true"});
  CHECK(result.code == 2);
  CHECK(contains(result.err,
                 "train.channels_last = true: is for pictures (channels, height, width), but a sample of "
                 "this data set has 1 dimension; set it to false"));
}

}  // namespace
