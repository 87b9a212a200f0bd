#include <doctest/doctest.h>

#include <cmath>

#include "data/memory_dataset.hpp"
#include "data/standardize.hpp"
#include "support/error_of.hpp"
#include "support/text.hpp"

using namespace ddprun;
using namespace ddprun::data;
using namespace ddprun::testing;

namespace {

using Memory = MemoryDataset<float, float>;

std::unique_ptr<Dataset> dataset_of(std::vector<int64_t> shape, std::vector<float> inputs) {
  int64_t elements = 1;
  for (const int64_t extent : shape) elements *= extent;
  const std::vector<float> targets(inputs.size() / static_cast<std::size_t>(elements), 7.0f);
  return std::make_unique<Memory>(std::move(shape), std::move(inputs), std::vector<int64_t>{1}, targets);
}

std::vector<float> inputs_of(const Dataset& dataset) {
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < dataset.size(); ++i) indices.push_back(i);
  std::vector<float> inputs(indices.size() * dataset.input().elements()), targets(indices.size());
  dataset.fetch(indices, 0, inputs.data(), targets.data());
  for (const float target : targets) CHECK(target == 7.0f);
  return inputs;
}

// Values far from zero, where a difference of squares would lose all digits.
std::vector<float> some_values(std::size_t count) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(10000 + std::sin(static_cast<float>(i)) * 3);
  return values;
}

}  // namespace

TEST_CASE("a vector has a mean and a deviation for each element, an image for each channel") {
  const std::vector<float> values = some_values(6 * 130);
  for (const bool picture : {false, true}) {
    CAPTURE(picture);
    const auto dataset = dataset_of(picture ? std::vector<int64_t>{2, 1, 3} : std::vector<int64_t>{6}, values);
    const Standardization by = fit_standardization(*dataset, 0);
    const std::size_t features = picture ? 2 : 6, elements = 6 / features;
    REQUIRE(by.mean.size() == features);
    for (std::size_t feature = 0; feature < features; ++feature) {
      long double sum = 0, squares = 0, count = 0;
      const auto each = [&](auto visit) {
        for (std::size_t i = 0; i < values.size(); ++i) {
          if (i % 6 / elements == feature) visit(static_cast<long double>(values[i]));
        }
      };
      each([&](long double value) { sum += value, count += 1; });
      each([&](long double value) { squares += (value - sum / count) * (value - sum / count); });
      CHECK(by.mean[feature] == doctest::Approx(static_cast<double>(sum / count)).epsilon(1e-12));
      CHECK(by.deviation[feature] == doctest::Approx(static_cast<double>(sqrtl(squares / count))).epsilon(1e-9));
    }
  }
}

TEST_CASE("standardised inputs have mean 0 and deviation 1; targets and shapes do not change") {
  auto dataset = dataset_of({3}, some_values(3 * 200));
  const Standardization by = fit_standardization(*dataset, 2);
  const auto standard = standardized(std::move(dataset), by);
  CHECK(standard->input().shape == std::vector<int64_t>{3});
  inputs_of(*standard);
  const Standardization again = fit_standardization(*standard, 0);
  for (std::size_t feature = 0; feature < 3; ++feature) {
    CHECK(std::abs(again.mean[feature]) < 1e-3);  // the mean of 10000 is rounded to float32
    CHECK(again.deviation[feature] == doctest::Approx(1).epsilon(1e-5));
  }
}

TEST_CASE("a constant feature is not scaled, even if its deviation is not exactly 0") {
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i) values.insert(values.end(), {0.1f, static_cast<float>(i % 2)});
  auto dataset = dataset_of({2}, values);
  const Standardization by = fit_standardization(*dataset, 0);
  CHECK(by.mean[0] == static_cast<double>(0.1f));
  CHECK(by.deviation == std::vector<double>{1, 0.5});
  const auto inputs = inputs_of(*standardized(std::move(dataset), by));
  CHECK(inputs[0] == 0);
  CHECK(inputs[1] == -1);
  CHECK(inputs[3] == 1);
}

TEST_CASE("the fit is bitwise equal with any number of workers") {
  const auto dataset = dataset_of({4}, some_values(4 * 1000));
  const std::string expected = to_text(fit_standardization(*dataset, 0));
  for (const int workers : {1, 3}) CHECK(to_text(fit_standardization(*dataset, workers)) == expected);
}

TEST_CASE("it is bitwise equal after conversion to text and back") {
  const Standardization by{{0.1, -1e300, 1.0 / 3}, {1, 5e-324, 2.5}};
  const Standardization again = read_standardization(to_text(by));
  CHECK(again.mean == by.mean);
  CHECK(again.deviation == by.deviation);
  for (const char* text : {"", "1", "1;", ";1", "1;0", "1;-1", "1,2;1", "1;1;1", "x;1", "1;nan", "1,;1,1", " 1;1"}) {
    CAPTURE(text);
    CHECK(contains(error_of([&] { read_standardization(text); }), "2: its standardization is no list"));
  }
}

TEST_CASE("inputs without a mean, or with the wrong number of features, are refused") {
  CHECK(error_of([] {
          fit_standardization(*dataset_of({1}, {1, NAN}), 0);
        }) == "2: sample 1 holds a value that is NaN or infinite");
  MemoryDataset<int64_t, float> whole({1}, {1, 2}, {1}, {1, 2});
  CHECK(contains(error_of([&] { fit_standardization(whole, 0); }), "needs inputs of type float32"));
  CHECK(contains(error_of([] {
                   standardized(dataset_of({1}, {1}), {{1, 2}, {1, 1}});
                 }),
                 "of 2 features, and these have 1"));
}
