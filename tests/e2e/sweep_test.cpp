// `ddprun sweep` with real runs.
#include <doctest/doctest.h>

#include "e2e/compared.hpp"
#include "e2e/run_files.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;
using nlohmann::json;
namespace fs = std::filesystem;

TEST_CASE("a sweep ranks its trials, and continues after one that fails") {
  Workplace place;
  const auto result = place.ddprun({"sweep", "--config", place.config(kRing), "--vary", "optimizer.lr=0.0001,1e30,0.05",
                                    "--set", "strategy.kind=single", "--output", place.runs().string()});
  CHECK_MESSAGE(result.code == 0, result.err);
  const fs::path folder = place.new_run();
  const json trials = json::parse(read_file(folder / "sweep.json")).at("trials");
  REQUIRE(trials.size() == 3);
  CHECK(trials[0].at("values").at("optimizer.lr") == "0.05");
  CHECK(trials[0].at("outcome") == "finished");
  CHECK(trials[1].at("values").at("optimizer.lr") == "0.0001");
  CHECK(trials[2].at("outcome") == "failed");
  CHECK(contains(trials[2].at("cause"), "loss"));
  CHECK(trials[0].at("test.loss").get<double>() < trials[1].at("test.loss").get<double>());
  CHECK(fs::exists(folder / "report.html"));
  const auto lines = lines_of(result.out);
  REQUIRE(lines.size() >= 4);
  CHECK(lines[1].starts_with("0.05"));
  CHECK(contains(result.out, "The test set chose it, so its results"));
}

TEST_CASE("a sweep ranks its trials by their validation sets, and refuses to where one is missing") {
  Workplace place;
  const auto sweep = [&](const Argv& more) {
    return place.ddprun(Argv{"sweep", place.config(kRing), "--vary", "optimizer.lr=0.0001,0.05", "--set",
                             "strategy.kind=single", "--output", place.runs().string()} +
                        more);
  };
  const auto result = sweep({"--set", "data.validation=0.2"});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK_FALSE(contains(result.err, "the test set chooses"));
  CHECK(contains(result.err, "validation loss"));
  CHECK(contains(result.out, "validation loss"));
  CHECK_FALSE(contains(result.out, "test loss"));
  const json object = json::parse(read_file(place.new_run() / "sweep.json"));
  CHECK(object.at("by") == "validation.loss");
  const json& trials = object.at("trials");
  CHECK(trials[0].at("values").at("optimizer.lr") == "0.05");
  CHECK(trials[0].at("validation.loss").get<double>() < trials[1].at("validation.loss").get<double>());
  CHECK(trials[0].at("test.loss") > 0);
  const auto missing = sweep({"--by", "validation.loss"});
  CHECK(missing.code == 2);
  CHECK_MESSAGE(contains(missing.err, "--by validation.loss needs data.validation, also in "), missing.err);
}

TEST_CASE("a sweep stops a trial that is worse than the median") {
  Workplace place;
  const auto result =
      place.ddprun({"sweep", place.config(kRing), "--vary", "optimizer.lr=0.05,0.04,1e-9", "--set",
                    "strategy.kind=single", "--set", "train.epochs=200", "--output", place.runs().string()});
  CHECK_MESSAGE(result.code == 0, result.err);
  const json trials = json::parse(read_file(place.new_run() / "sweep.json")).at("trials");
  REQUIRE(trials.size() == 3);
  CHECK(trials[2].at("values").at("optimizer.lr") == "1e-9");
  CHECK(trials[2].at("outcome") == "stopped");
  CHECK(trials[2].at("epochs").get<int>() < 200);
}

TEST_CASE("a sweep by a metric that the model does not report ends with the first trial") {
  Workplace place;
  const auto result =
      place.ddprun({"sweep", "--config", place.config(kRing), "--vary", "optimizer.lr=0.05,0.04", "--by",
                    "test.accuracy", "--set", "strategy.kind=single", "--output", place.runs().string()});
  CHECK(result.code == 2);
  CHECK_MESSAGE(
      contains(result.err, "--by test.accuracy: the model \"linear\" reports no accuracy; use --by test.loss"),
      result.err);
}
