// The shipped experiments reach their expected results.
#include <doctest/doctest.h>

#include <cstdlib>
#include <iostream>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"
#include "support/paths.hpp"

using namespace ddprun::e2e;

namespace {

nlohmann::json run_shipped(const std::string& name, const std::vector<std::string>& overrides = {}) {
  Workplace place;
  const auto result = place.run(place.training(ddprun::testing::source_dir() + "/configs/" + name, overrides));
  INFO(result.err);
  REQUIRE(result.code == 0);
  return summary_of(place.new_run());
}

TEST_CASE("linear learns 2 x + 3, on one process and on two ranks") {
  for (const char* config : {"linear_single.toml", "linear_ddp_gloo.toml"}) {
    CAPTURE(config);
    const auto summary = run_shipped(config);
    CHECK(std::abs(summary.at("learned.weight").get<double>() - 2) < 0.02);
    CHECK(std::abs(summary.at("learned.bias").get<double>() - 3) < 0.02);
    // The variance of the noise: 0.1 squared.
    CHECK(std::abs(summary.at("test.loss").get<double>() - 0.01) < 0.002);
    CHECK(std::abs(summary.at("train.loss").get<double>() - 0.01) < 0.002);
  }
}

TEST_CASE("simplenet reaches 86 % on Fashion-MNIST as quickstart trains it") {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist")) {
    std::cout << "skipped: Debian's package dataset-fashion-mnist is not installed\n";
    return;
  }
  const auto summary = run_shipped("quickstart.toml", {"train.epochs=3"});
  CHECK(summary.at("test.accuracy").get<double>() >= 0.86);
  CHECK(summary.at("world") == 2);
}

TEST_CASE("simplenet reaches 97 % on MNIST") {
  const char* folder = std::getenv("DDPRUN_TEST_DATA");
  const std::string root = folder == nullptr ? "" : std::string(folder) + "/mnist";
  if (root.empty() || !std::filesystem::exists(root)) {
    std::cout << "skipped: DDPRUN_TEST_DATA names no folder that holds mnist/\n";
    return;
  }
  const auto summary = run_shipped("mnist_simplenet_ddp_gloo.toml", {"data.root=" + root, "train.epochs=4"});
  CHECK(summary.at("test.accuracy").get<double>() >= 0.97);
}

}  // namespace
