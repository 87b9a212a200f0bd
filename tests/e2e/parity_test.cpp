// N ranks with a batch of B/N give the results of one process with a batch of B.
#include <doctest/doctest.h>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"

using namespace ddprun::e2e;

namespace {

// 240 samples in steps of 24: ten steps, divisible by 2, 3 and 4 ranks.
const std::string kLinear = R"(
[strategy]
kind = "ddp"
[launch]
threads = 1
[model]
name = "linear"
[data]
name = "linear"
batch_size = 24
options = { samples = 240, test_samples = 48 }
[optimizer]
lr = 0.05
momentum = 0.9
)";

const std::string kSimplenet = R"(
[strategy]
kind = "ddp"
bucket_cap_mb = 0.004  # several buckets, so that their order and bounds matter
[launch]
threads = 1
[model]
name = "simplenet"
[data]
name = "synthetic"
batch_size = 24
options = { shape = "1x28x28", classes = 10, samples = 240, test_samples = 48 }
[optimizer]
)";

struct Trained {
  std::vector<double> losses;
  Weights weights;
  nlohmann::json summary;
  int64_t samples = 0;  // of all ranks in the epoch
};

Trained train(Workplace& place, const std::string& config, int world, std::vector<std::string> overrides) {
  overrides.push_back("launch.nproc=" + std::to_string(world));
  const auto result = place.run(place.training(config, overrides));
  INFO(result.err);
  REQUIRE(result.code == 0);
  const auto run = place.new_run();
  Trained trained{losses_of(run, world), weights_of(run), summary_of(run), 0};
  for (int rank = 0; rank < world; ++rank) {
    for (const auto& step : steps_of(run, rank)) trained.samples += step.at("samples").get<int64_t>();
  }
  return trained;
}

// One process without reducer and communication, on the same permutation of the samples.
Trained train_single(Workplace& place, const std::string& config, std::vector<std::string> overrides = {}) {
  overrides.insert(overrides.end(), {"strategy.kind=single", "data.sampler=distributed"});
  return train(place, config, 1, overrides);
}

void check_same(const Trained& single, const Trained& together, double tolerance) {
  CHECK(distance(single.losses, together.losses) < tolerance);
  CHECK(distance(single.weights, together.weights) < tolerance);
  for (const char* key : {"test.loss", "train.loss"}) {
    CHECK(together.summary.at(key).get<double>() ==
          doctest::Approx(single.summary.at(key).get<double>()).epsilon(tolerance));
  }
  CHECK(together.samples == single.samples);
}

struct Together {
  const char* algorithm;
  int world;
};
const std::vector<Together> kAll = {{"ring", 2}, {"ring", 3}, {"ring", 4}, {"tree", 2}, {"tree", 3},
                                    {"tree", 4}, {"auto", 2}, {"auto", 3}, {"auto", 4}};
// Each world size and each algorithm once: an optimizer is independent of them.
const std::vector<Together> kEachOnce = {{"tree", 2}, {"auto", 3}, {"ring", 4}};

void check_follows(const std::string& text, double tolerance, const std::vector<Together>& all) {
  Workplace place;
  const std::string config = place.config(text);
  const Trained single = train_single(place, config);
  REQUIRE(single.losses.size() == 10);
  // Weights that did not change would be equal in any case.
  REQUIRE(single.losses.front() != doctest::Approx(single.losses.back()).epsilon(0.02));
  for (const auto& [algorithm, world] : all) {
    CAPTURE(algorithm);
    CAPTURE(world);
    const Trained together = train(place, config, world, {std::string("comm.algorithm=") + algorithm});
    check_same(single, together, tolerance);
    CHECK(together.summary.at("world") == world);
    if (std::string(algorithm) != "auto") CHECK(together.summary.at("algorithm") == algorithm);
  }
}

TEST_CASE("two, three and four ranks match one with linear and SGD") {
  check_follows(kLinear, 1e-5, kEachOnce);
}

TEST_CASE("two, three and four ranks match one with simplenet and SGD, under every algorithm") {
  check_follows(kSimplenet + "name = \"sgd\"\nlr = 0.05\nmomentum = 0.9\nweight_decay = 1e-3\n", 1e-5, kAll);
}

TEST_CASE("two, three and four ranks match one with simplenet and Adam") {
  // eps limits how much Adam amplifies rounding errors of gradients near zero.
  check_follows(kSimplenet + "name = \"adam\"\nlr = 1e-3\neps = 1e-4\n", 1e-5, kEachOnce);
}

TEST_CASE("a world of one under ddp uses the single-process backend and equals strategy single bit for bit") {
  Workplace place;
  const std::string config = place.config(kSimplenet + "name = \"sgd\"\nlr = 0.05\n");
  const Trained single = train_single(place, config);
  const Trained world_of_one = train(place, config, 1, {});
  CHECK(world_of_one.summary.at("backend") == "single-process");
  CHECK(world_of_one.summary.at("strategy") == "ddp");
  CHECK(world_of_one.losses == single.losses);
  CHECK(world_of_one.weights == single.weights);
  CHECK_FALSE(single.summary.contains("backend"));
}

TEST_CASE("data.last = exact: ranks with unequal numbers of samples match one rank, no sample twice") {
  Workplace place;
  const std::string config = place.config(kSimplenet + "name = \"sgd\"\nlr = 0.05\nmomentum = 0.9\n");
  // 251 samples in steps of 24 leave 11 for the last: 4, 4 and 3 for three ranks.
  const std::vector<std::string> overrides = {"data.options.samples=251", "data.last=exact"};
  const Trained single = train_single(place, config, overrides);
  REQUIRE(single.losses.size() == 11);
  CHECK(single.samples == 251);
  for (const int world : {2, 3, 4}) {
    CAPTURE(world);
    check_same(single, train(place, config, world, overrides), 1e-5);
  }
}

TEST_CASE("data.last = exact: a rank without samples in the last step still participates") {
  Workplace place;
  const std::string config = place.config(kLinear);
  const std::vector<std::string> overrides = {"data.options.samples=242", "data.last=exact"};  // 2 for 4 ranks
  const Trained single = train_single(place, config, overrides);
  CHECK(single.samples == 242);
  check_same(single, train(place, config, 4, overrides), 1e-5);
}

TEST_CASE("data.last = pad gives every rank the same number of samples, drop leaves out the rest") {
  Workplace place;
  const std::string config = place.config(kLinear);
  const std::string samples = "data.options.samples=241";
  CHECK(train(place, config, 3, {samples, "data.last=pad"}).samples == 243);
  CHECK(train(place, config, 3, {samples, "data.last=drop"}).samples == 240);
}

TEST_CASE("scale_lr = world multiplies the learning rate by the number of ranks") {
  Workplace place;
  const std::string config = place.config(kLinear);
  const Trained by_hand = train(place, config, 2, {"optimizer.lr=0.02"});
  CHECK(train(place, config, 2, {"optimizer.lr=0.01", "optimizer.scale_lr=world"}).weights == by_hand.weights);
}

}  // namespace
