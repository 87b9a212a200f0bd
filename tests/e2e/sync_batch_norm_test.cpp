// model.sync_batch_norm: ranks with parts of a batch train a model with BatchNorm as one process does with the batch.
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
sync_batch_norm = true
[data]
name = "synthetic"
batch_size = 8
sampler = "distributed"
options = { shape = "3x16x16", classes = 4, samples = 16, test_samples = 10 }
[optimizer]
lr = 0.01
)";

}  // namespace

TEST_CASE("two ranks with SyncBatchNorm match one process: losses, weights and running statistics") {
  Workplace place;
  const std::string config = place.config(kImages);
  const auto train = [&](const std::vector<std::string>& overrides) {
    const auto result = place.run(place.training(config, overrides));
    INFO(result.err);
    REQUIRE(result.code == 0);
    CHECK(contains(result.err, "not used by strategy \"single\" on device \"cpu\": model.sync_batch_norm") ==
          overrides.empty());
    return place.new_run();
  };
  const auto single = train({});
  const auto together = train({"strategy.kind=ddp", "launch.nproc=2", "strategy.hash_every=1"});
  CHECK(distance(losses_of(single, 1), losses_of(together, 2)) < 1e-4);
  CHECK(distance(weights_of(single), weights_of(together)) < 1e-4);

  const auto apart = train({"strategy.kind=ddp", "launch.nproc=2", "model.sync_batch_norm=false"});
  CHECK(distance(weights_of(single), weights_of(apart)) > 1e-3);
}

TEST_CASE("a model without BatchNorm says that model.sync_batch_norm has no effect") {
  Workplace place;
  const std::string config = place.config(kImages);
  const auto result = place.run(
      place.training(config, {"strategy.kind=ddp", "launch.nproc=2", "model.name=simplenet", "model.options={}"}));
  CHECK(result.code == 0);
  CHECK_MESSAGE(contains(result.err, "model.sync_batch_norm has no effect: the model has no BatchNorm"), result.err);
}
