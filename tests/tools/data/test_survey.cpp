#include <doctest/doctest.h>

#include <limits>

#include "data/memory_dataset.hpp"
#include "tools/data/survey.hpp"

using namespace ddprun;
using namespace ddprun::data;
using namespace ddprun::testing;
using namespace std::chrono_literals;

namespace {

// Sample i is the number i, of class i % classes.
MemoryDataset<float, int64_t> counting(int64_t samples, int64_t classes) {
  std::vector<float> inputs;
  std::vector<int64_t> targets;
  for (int64_t i = 0; i < samples; ++i) {
    inputs.push_back(static_cast<float>(i));
    targets.push_back(i % classes);
  }
  return {{1}, inputs, {}, targets, std::vector<std::string>(static_cast<std::size_t>(classes), "some")};
}

std::vector<std::string> numbered(int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

void check_spread(const Spread& spread, double low, double high, double mean, double deviation) {
  CHECK(spread.low == low);
  CHECK(spread.high == high);
  CHECK(spread.mean == doctest::Approx(mean));
  CHECK(spread.deviation == doctest::Approx(deviation));
}

}  // namespace

TEST_CASE("inputs with three dimensions are measured by channel, others as a whole") {
  const std::vector<float> values = {0, 1, 10, 30, 5, 5, 2, 3, 20, 40, 5, 5};  // 2 samples of 3 channels of 2 values
  const Survey images = survey(MemoryDataset<float, int64_t>({3, 1, 2}, values, {}, {0, 1}, {"a", "b"}));
  REQUIRE(images.inputs.size() == 3);
  check_spread(images.inputs[0], 0, 3, 1.5, std::sqrt(1.25));
  check_spread(images.inputs[1], 10, 40, 25, std::sqrt(125.0));
  check_spread(images.inputs[2], 5, 5, 5, 0);
  CHECK(images.measured == 2);
  const Survey rows = survey(MemoryDataset<float, int64_t>({3, 2}, values, {}, {0, 1}, {"a", "b"}));
  REQUIRE(rows.inputs.size() == 1);
  check_spread(rows.inputs[0], 0, 40, 10.5, std::sqrt(3114.0 / 12 - 10.5 * 10.5));
}

TEST_CASE("integers are measured like floats") {
  const Survey tokens = survey(MemoryDataset<int64_t, int64_t>({2}, {1, 2, 3, 4}, {2}, {-7, 9, 0, 0}));
  check_spread(tokens.inputs[0], 1, 4, 2.5, std::sqrt(1.25));
  check_spread(tokens.targets, -7, 9, 0.5, std::sqrt(130.0 / 4 - 0.25));
  CHECK(tokens.classes.empty());
}

TEST_CASE("values that are not finite are counted and excluded") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Survey some = survey(MemoryDataset<float, float>({2}, {nan, 1, inf, 3, -inf, 2}, {1}, {nan, inf, nan}));
  check_spread(some.inputs[0], 1, 3, 2, std::sqrt(2.0 / 3));
  CHECK(some.inputs[0].others == 3);
  CHECK(some.targets.others == 3);
  CHECK(std::isnan(some.targets.low));
  CHECK(std::isnan(some.targets.mean));
}

TEST_CASE("a small spread far from 0 is not lost in rounding") {
  std::vector<float> values;
  for (int i = 0; i < 3000; ++i) values.push_back(16'000'000.0f + static_cast<float>(i % 3));
  const Survey far = survey(MemoryDataset<float, float>({1}, values, {1}, std::vector<float>(3000)), {3000, 1h, 1h});
  check_spread(far.inputs[0], 16e6, 16e6 + 2, 16e6 + 1, std::sqrt(2.0 / 3));
}

TEST_CASE("classes are counted over the whole split if there is time, inputs over samples from all of it") {
  const Survey all = survey(counting(4321, 4), {1000, 1h});
  CHECK(all.measured == 1000);
  CHECK(all.counted == 4321);
  CHECK(all.classes == std::vector<int64_t>{1081, 1080, 1080, 1080});
  CHECK(all.inputs[0].low == 0);
  CHECK(all.inputs[0].high > 4310);
  CHECK(all.inputs[0].mean == doctest::Approx(2160).epsilon(0.01));
}

TEST_CASE("without time only the measured samples are counted") {
  const Survey first = survey(counting(4321, 4), {1000, 0s});
  CHECK(first.counted == 1000);
  for (const int64_t count : first.classes) CHECK(count == doctest::Approx(250).epsilon(0.05));
  CHECK(survey(counting(70, 4), {30, 0s}).counted == 30);
  CHECK(survey(counting(70, 4), {1000, 0s}).counted == 70);
}

TEST_CASE("samples larger than a chunk, and splits that no chunk size divides, are read completely") {
  const int64_t side = 300'000;  // more than 1 MiB
  std::vector<float> values(static_cast<std::size_t>(side) * 3, 1);
  values.back() = 5;
  const Survey large = survey(MemoryDataset<float, float>({side}, values, {1}, {1, 2, 3}));
  CHECK(large.inputs[0].high == 5);
  CHECK(large.targets.mean == 2);
  const Survey many = survey(counting(300'001, 2), {300'001, 0s, 1h});
  CHECK(many.inputs[0].high == 300'000);
  CHECK(many.classes == std::vector<int64_t>{150'001, 150'000});
}

TEST_CASE("in a split that is sorted by class, each class is sampled in proportion") {
  for (const int64_t size : {int64_t{2000}, int64_t{4181}, int64_t{60'000}, int64_t{99'991}}) {
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < size; ++i) labels.push_back(i * 10 / size);
    const std::vector<float> inputs(labels.begin(), labels.end());
    const Survey sorted = survey(MemoryDataset<float, int64_t>({1}, inputs, {}, labels, numbered(10)), {1000, 0s, 1h});
    CHECK(sorted.inputs[0].low == 0);
    CHECK(sorted.inputs[0].high == 9);
    CHECK(sorted.inputs[0].mean == doctest::Approx(4.5).epsilon(0.01));
    CHECK(sorted.inputs[0].deviation == doctest::Approx(std::sqrt(8.25)).epsilon(0.01));
    for (const int64_t count : sorted.classes) CHECK(count == doctest::Approx(100).epsilon(0.03));
  }
}

TEST_CASE("if samples are slow, fewer are measured, at least one") {
  const int64_t side = 300'000;  // so each sample is one chunk
  const std::vector<float> values(static_cast<std::size_t>(side) * 3, 1);
  const Survey slow = survey(MemoryDataset<float, float>({side}, values, {1}, {1, 2, 3}), {1000, 0s, 0s});
  CHECK(slow.measured == 1);
  CHECK(slow.counted == 1);
}

TEST_CASE("a single sample is returned as numbers") {
  const MemoryDataset<float, int64_t> set({2}, {0.5f, 1.5f, -2, 7}, {}, {3, 4}, {"a", "b", "c", "d", "e"});
  CHECK(has_classes(set));
  const Sample sample = fetch_sample(set, 1, 0);
  CHECK(sample.input == std::vector<double>{-2, 7});
  CHECK(sample.target == std::vector<double>{4});
  CHECK_FALSE(has_classes(MemoryDataset<float, float>({1}, {1}, {}, {1}, {"a"})));
  CHECK_FALSE(has_classes(MemoryDataset<float, int64_t>({1}, {1}, {1}, {1}, {"a"})));
  CHECK_FALSE(has_classes(MemoryDataset<float, int64_t>({1}, {1}, {}, {1})));
}
