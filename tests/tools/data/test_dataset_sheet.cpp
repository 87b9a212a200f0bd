#include <doctest/doctest.h>

#include <limits>

#include "data/memory_dataset.hpp"
#include "support/contains.hpp"
#include "tools/data/info.hpp"

using namespace ddprun;
using namespace ddprun::info;
using namespace ddprun::testing;

namespace {

SplitSheet sheet(const std::string& name, const Dataset& dataset, const data::SurveyLimits& limits = {}) {
  return {name, &dataset, data::survey(dataset, limits)};
}

std::vector<std::string> numbered(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace

TEST_CASE("images with classes: samples, shapes, types, values of each channel, classes of each split") {
  const MemoryDataset<float, int64_t> train({3, 1, 2}, {0, 1, 2, 4, 5, 5, 0, 1, 2, 4, 5, 5}, {}, {1, 1},
                                            {"cat", "dog"});
  const MemoryDataset<float, int64_t> test({3, 1, 2}, {0, 0, 0, 0, 0, 0}, {}, {0}, {"cat", "dog"});
  CHECK(dataset_sheet({sheet("train", train), sheet("test", test)}) ==
        "split  samples  input              target\n"
        "train        2  float32 3 x 1 x 2  int64\n"
        "test         1  float32 3 x 1 x 2  int64\n"
        "\n"
        "input of  samples  channel  min  max  mean  std\n"
        "train     all            0    0    1   0.5  0.5\n"
        "train     all            1    2    4     3    1\n"
        "train     all            2    5    5     5    0\n"
        "test      all            0    0    0     0    0\n"
        "test      all            1    0    0     0    0\n"
        "test      all            2    0    0     0    0\n"
        "\n"
        "class  name  train  test\n"
        "    0  cat       0     1\n"
        "    1  dog       2     0\n");
}

TEST_CASE("regression: the range of the targets, and values that are not finite") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const MemoryDataset<float, float> line({1}, {1, 3, nan}, {1}, {-2, 2, 0});
  CHECK(dataset_sheet({sheet("train", line)}) ==
        "split  samples  input      target\n"
        "train        3  float32 1  float32 1\n"
        "\n"
        "input of  samples    min  max  mean  std\n"
        "train     all          1    3     2    1  1 not finite, left out\n"
        "\n"
        "target of  samples    min  max  mean    std\n"
        "train      all         -2    2     0  1.633\n");
}

TEST_CASE("statistics of some samples report the number of samples") {
  const MemoryDataset<float, int64_t> large({1}, std::vector<float>(1500), {}, std::vector<int64_t>(1500), {"only"});
  const std::string text = dataset_sheet({sheet("train", large, {1000, std::chrono::seconds(0)})});
  CHECK_MESSAGE(contains(text, "train     1,000 spread over all"), text);
  CHECK_MESSAGE(
      contains(text, "class  name  train (1,000 spread over all)\n    0  only                          1,000\n"), text);
}

TEST_CASE("of many classes and channels the first are shown, and the number of others") {
  const MemoryDataset<float, int64_t> wide({20, 1, 1}, std::vector<float>(20), {}, {1234}, numbered(2000));
  const std::string text = dataset_sheet({sheet("train", wide)});
  CHECK_MESSAGE(contains(text, "   49  49        0\nand 1,950 more classes\n"), text);
  CHECK_MESSAGE(contains(text, "train     all            7    0    0     0    0\nand 12 more channels\n"), text);
}

TEST_CASE("a target is shown by number and name, or by its values") {
  const auto text = [](const std::vector<std::string>& classes, double label) {
    return target_text(MemoryDataset<float, int64_t>({1}, {0}, {}, {0}, classes), {{0}, {label}});
  };
  CHECK(text({"cat", "dog"}, 1) == "class 1 \"dog\"");
  CHECK(text({"0", "1"}, 1) == "class 1");
  CHECK(text({"a\x1b[2Jb\nc\x7f"}, 0) == "class 0 \"a?[2Jb?c?\"");
  CHECK(text({"a\xc2\x9b\x32J\xff"}, 0) == "class 0 \"a??2J?\"");
  CHECK(text({"a"}, 5) == "class 5");
  CHECK(target_text(MemoryDataset<float, float>({1}, {0}, {2}, {0, 0}), {{0}, {2.5, -1}}) == "2.5 -1");
}

TEST_CASE("samples that are no images are lines of values, cut if they are long") {
  const MemoryDataset<float, float> line({10}, std::vector<float>(10), {1}, {0});
  const std::vector<double> ten = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  CHECK(sample_table(line, 41, {{ten, {1.5}}, {ten, {-3}}}) ==
        "sample  input                target\n"
        "    41  0 1 2 3 4 5 6 7 ...  1.5\n"
        "    42  0 1 2 3 4 5 6 7 ...  -3\n");
}
