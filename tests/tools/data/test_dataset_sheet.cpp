#include <doctest/doctest.h>

#include <limits>

#include "data/memory_dataset.hpp"
#include "support/golden.hpp"
#include "support/text.hpp"
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

TEST_CASE(
    "the tables: splits, values of each channel, classes; of a regression, targets and values that are not finite") {
  const MemoryDataset<float, int64_t> train({3, 1, 2}, {0, 1, 2, 4, 5, 5, 0, 1, 2, 4, 5, 5}, {}, {1, 1},
                                            {"cat", "dog"});
  const MemoryDataset<float, int64_t> test({3, 1, 2}, {0, 0, 0, 0, 0, 0}, {}, {0}, {"cat", "dog"});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const MemoryDataset<float, float> line({1}, {1, 3, nan}, {1}, {-2, 2, 0});
  const MemoryDataset<float, float> ten({10}, std::vector<float>(10), {1}, {0});
  const std::vector<double> values = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  check_golden("tools/data/info.txt", dataset_sheet({sheet("train", train), sheet("test", test)}) + "\n" +
                                          dataset_sheet({sheet("train", line)}) + "\n" +
                                          sample_table(ten, 41, {{values, {1.5}}, {values, {-3}}}));
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
