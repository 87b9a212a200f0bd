// What a run may change when it resumes from a checkpoint.
#include <doctest/doctest.h>

#include "cli/config/experiment.hpp"
#include "cli/config/keys.hpp"
#include "written.hpp"

using namespace ddprun;
using config::Change;

TEST_CASE("each key has a value as TOML, options as one table") {
  const auto loaded =
      testing::load_text("optimizer.lr = 0.5\nlog.trace_steps = []\ntrain.steps = 7\n" + testing::required,
                         {"data.options.a=1", "data.options.b=two", "launch.devices=[2, 1]"});
  const auto values = config::key_values(loaded.experiment);
  CHECK(values.size() == config::keys().size());
  CHECK(values.at("optimizer.lr") == "0.5");
  CHECK(values.at("data.options") == "{ a = \"1\", b = \"two\" }");
  CHECK(values.at("launch.devices") == "[2, 1]");
  CHECK(values.at("train.steps") == "7");
  CHECK(values.at("train.epochs") == "");
}

TEST_CASE("a change that makes a different run is refused, one that changes rounding is reported, the rest is free") {
  for (const char* key : {"experiment.seed", "model.name", "model.options", "data.name", "data.options", "data.sampler",
                          "data.standardize", "optimizer.name"}) {
    CAPTURE(key);
    CHECK(config::change_of(key) == Change::refused);
  }
  for (const char* key : {"optimizer.lr", "optimizer.eps", "train.epochs", "train.amp", "strategy.bucket_cap_mb",
                          "strategy.kind", "comm.backend", "launch.threads", "data.balance_steps"}) {
    CAPTURE(key);
    CHECK(config::change_of(key) == Change::reported);
  }
  for (const char* key : {"experiment.name", "experiment.output", "model.weights", "data.root", "data.workers",
                          "data.batch_size", "launch.nproc", "comm.timeout", "checkpoint.resume", "strategy.zero",
                          "log.every", "a.key.of.another.version"}) {
    CAPTURE(key);
    CHECK(config::change_of(key) == Change::free);
  }
}
