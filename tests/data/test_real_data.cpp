// The real MNIST, Fashion-MNIST and CIFAR-10, if they are installed.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "data/opening.hpp"

using namespace ddprun;
using namespace ddprun::data;
using namespace ddprun::testing;

namespace {

// Mean and class counts of a split, against the published ones.
struct Summary {
  double mean = 0;
  std::vector<int64_t> counts;
};

Summary summarise(const Dataset& dataset) {
  Summary summary;
  summary.counts.resize(dataset.classes().size());
  const auto samples = fetch_all<int64_t>(dataset);
  for (const float pixel : samples.inputs) summary.mean += pixel;
  summary.mean /= static_cast<double>(samples.inputs.size());
  for (const int64_t label : samples.targets) ++summary.counts.at(static_cast<std::size_t>(label));
  return summary;
}

}  // namespace

TEST_CASE("MNIST has its published figures: 60,000 and 10,000 images of mean 0.1307") {
  const char* folder = std::getenv("DDPRUN_TEST_DATA");
  if (folder == nullptr || !std::filesystem::exists(std::filesystem::path(folder) / "mnist")) {
    MESSAGE("skipped: DDPRUN_TEST_DATA names no folder that holds mnist/");
    return;
  }
  const auto splits = open_builtin({"mnist", std::string(folder) + "/mnist", {}, 0});
  REQUIRE(splits.train->size() == 60'000);
  CHECK(splits.test->size() == 10'000);
  CHECK(splits.train->input().shape == std::vector<int64_t>{1, 28, 28});
  const auto train = summarise(*splits.train);
  CHECK(train.mean == doctest::Approx(0.1307).epsilon(0.001));
  CHECK(train.counts == std::vector<int64_t>{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949});
  CHECK(fetch<int64_t>(*splits.train, {0, 1, 2, 3, 4}).targets == std::vector<int64_t>{5, 0, 4, 1, 9});
}

TEST_CASE("Debian's Fashion-MNIST opens without a root: 6,000 images of each class, mean 0.2860") {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist")) {
    MESSAGE("skipped: Debian's package dataset-fashion-mnist is not installed");
    return;
  }
  const auto splits = open_builtin({"fashion-mnist", "", {}, 0});
  REQUIRE(splits.train->size() == 60'000);
  const auto train = summarise(*splits.train);
  CHECK(train.mean == doctest::Approx(0.2860).epsilon(0.001));
  CHECK(train.counts == std::vector<int64_t>(10, 6'000));
  CHECK(summarise(*splits.test).counts == std::vector<int64_t>(10, 1'000));
}

TEST_CASE("a fifth of CIFAR-10 has its published figures: channel means 0.49, 0.48 and 0.45, classes of similar size") {
  const char* folder = std::getenv("DDPRUN_TEST_DATA");
  if (folder == nullptr || !std::filesystem::exists(std::filesystem::path(folder) / "cifar10")) {
    MESSAGE("skipped: DDPRUN_TEST_DATA names no folder that holds cifar10/");
    return;
  }
  const auto splits =
      open_builtin({"cifar10",
                    std::string(folder) + "/cifar10",
                    {{"train", "data_batch_1.bin"}, {"test", "test_batch_2000.bin"}, {"mean", "0"}, {"std", "1"}},
                    0});
  REQUIRE(splits.train->size() == 10'000);
  CHECK(splits.test->size() == 2'000);
  const auto train = fetch_all<int64_t>(*splits.train);
  std::vector<double> means(3);
  for (std::size_t i = 0; i < train.inputs.size(); ++i) means[i / 1024 % 3] += train.inputs[i];
  CHECK(means[0] / 10'240'000 == doctest::Approx(0.4914).epsilon(0.01));
  CHECK(means[1] / 10'240'000 == doctest::Approx(0.4822).epsilon(0.01));
  CHECK(means[2] / 10'240'000 == doctest::Approx(0.4465).epsilon(0.01));
  CHECK(summarise(*splits.train).counts ==
        std::vector<int64_t>{1005, 974, 1032, 1016, 999, 937, 1030, 1001, 1025, 981});
  for (const int64_t count : summarise(*splits.test).counts) CHECK(std::abs(count - 200) < 50);
}
