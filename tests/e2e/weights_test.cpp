// model.weights: training starts from a file, and a file that does not match starts nothing.
#include <doctest/doctest.h>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

const std::string kImages = R"(
[launch]
nproc = 2
threads = 1
[strategy]
kind = "ddp"
[model]
name = "simplenet"
options = { hidden = 16 }
[data]
name = "synthetic"
batch_size = 24
options = { shape = "1x8x8", classes = 10, samples = 240, test_samples = 48 }
[train]
steps = 3
)";

std::filesystem::path trained(Workplace& place, const std::string& config, const std::vector<std::string>& overrides) {
  const auto printed = place.run(place.training(config, overrides));
  INFO(printed.err);
  REQUIRE(printed.code == 0);
  return place.new_run();
}

TEST_CASE("a run starts from the weights of a file, under ddp and single") {
  Workplace place;
  const std::string config = place.config(kImages);
  const auto first = trained(place, config, {});
  const std::string weights = "model.weights=" + commits_of(first).back().path;
  for (const char* kind : {"strategy.kind=ddp", "strategy.kind=single"}) {
    CAPTURE(kind);
    // Another seed would give other weights; with a learning rate of 0 they do not change.
    const auto second = trained(place, config, {kind, weights, "experiment.seed=7", "optimizer.lr=0"});
    CHECK(weights_of(second) == weights_of(first));
  }
}

TEST_CASE("missing weights, or those of another model, are reported with their place before any rank starts") {
  Workplace place;
  const std::string missing = place.config(kImages + "[checkpoint]\nkeep = 1\n", "missing");
  const auto absent = place.run(place.training(missing, {"model.weights=/nowhere/w.safetensors"}));
  CHECK(absent.code == 2);
  CHECK(contains(absent.err,
                 "--set model.weights=/nowhere/w.safetensors: model.weights = \"/nowhere/w.safetensors\": "
                 "/nowhere/w.safetensors: no such checkpoint"));
  CHECK_FALSE(std::filesystem::exists(place.runs()));

  const auto first = trained(place, place.config(kImages), {});
  const std::string path = commits_of(first).back().path;
  const std::string other =
      place.config("[model]\nname = \"simplenet\"\nweights = \"" + path + "\"\noptions = { hidden = 5 }\n" +
                       "[data]\nname = \"synthetic\"\noptions = { shape = \"1x8x8\", classes = 10, samples = 24 }\n",
                   "other");
  const auto result = place.ddprun({"validate", other});
  CHECK(result.code == 2);
  INFO(result.err);
  CHECK(contains(result.err, "other.toml:3:11: model.weights = "));
  CHECK(contains(result.err, path +
                                 ": these are not the weights of this model: \"fc1.weight\" is F32 [16, 64], and the "
                                 "model's is F32 [5, 64]; "));
}

}  // namespace
