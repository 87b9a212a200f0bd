// ResNet-18 on real CIFAR-10 images, trained by the program from the shipped configs.
#include <doctest/doctest.h>

#include <cstdlib>
#include <iostream>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"
#include "support/paths.hpp"

using namespace ddprun::e2e;

namespace {

using Overrides = std::vector<std::string>;

// The overrides that select the real images. Without them, prints a line and ends the program, because there is nothing
// to test.
Overrides real_images() {
  const char* folder = std::getenv("DDPRUN_TEST_DATA");
  const std::string root = folder == nullptr ? "" : std::string(folder) + "/cifar10";
  if (root.empty() || !std::filesystem::exists(root)) {
    std::cout << "skipped: DDPRUN_TEST_DATA names no folder that holds cifar10/" << std::endl;
    std::exit(77);
  }
  return {"data.root=" + root, "data.options.train=data_batch_1.bin", "data.options.test=test_batch_2000.bin",
          "launch.threads=1"};
}

nlohmann::json train(const std::string& config, Overrides overrides, const Overrides& more) {
  overrides.insert(overrides.end(), more.begin(), more.end());
  Workplace place;
  const auto result = place.run(place.training(ddprun::testing::source_dir() + "/configs/" + config, overrides));
  INFO(result.err);
  REQUIRE(result.code == 0);
  return summary_of(place.new_run());
}

TEST_CASE("the tutorial's configs train at 224x224, with single and ddp") {
  const Overrides images = real_images();
  for (const char* config : {"cifar10_resnet18_single.toml", "cifar10_resnet18_ddp_gloo.toml"}) {
    CAPTURE(config);
    const auto summary = train(config, images,
                               {"data.batch_size=8", "train.steps=2", "train.evaluate=false", "data.options.samples=64",
                                "data.options.test_samples=8"});
    CHECK(summary.at("steps") == 2);
    CHECK(std::isfinite(summary.at("train.loss").get<double>()));
  }
}

TEST_CASE("ResNet-18 memorises 200 images") {
  Overrides images = real_images();
  images[2] = "data.options.test=data_batch_1.bin";  // evaluated on the training images
  const auto summary = train("cifar10_resnet18_single_laptop.toml", images,
                             {"data.options.samples=200", "data.options.test_samples=200", "data.batch_size=40",
                              "data.options.random_crop=0", "data.options.random_flip=false", "optimizer.name=adam",
                              "optimizer.lr=3e-4", "train.epochs=12", "checkpoint.every_epochs=0"});
  CHECK(summary.at("test.accuracy").get<double>() > 0.95);
}

TEST_CASE("ResNet-18 learns to classify unseen images, on two ranks") {
  const Overrides images = real_images();
  const auto summary = train("cifar10_resnet18_ddp_gloo_laptop.toml", images,
                             {"train.epochs=1", "data.options.samples=4000", "data.options.test_samples=1000"});
  CHECK(summary.at("test.accuracy").get<double>() > 0.15);  // chance is 0.1, five standard deviations below
  CHECK(summary.at("world") == 2);
}

}  // namespace
