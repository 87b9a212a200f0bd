#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "data/opening.hpp"

using namespace ddprun;
using namespace ddprun::data;
using namespace ddprun::testing;

TEST_CASE("an unknown name is reported with all names and the nearest one") {
  const std::string error = builtin_error({"fashon-mnist", "", {}, 0});
  CHECK(error.starts_with("name: expected \"linear\", \"mnist\", \"fashion-mnist\", "));
  CHECK(error.ends_with(" (did you mean \"fashion-mnist\"?); plugins are looked for in nowhere"));
  CHECK(builtin_error({"", "", {}, 0}).find("did you mean") == std::string::npos);
}

TEST_CASE("an unknown option is reported with the options of that data set") {
  CHECK(builtin_error({"linear", "", {{"slop", "1"}}, 0}) ==
        "options.slop: data set \"linear\" has no such option; expected \"samples\", \"test_samples\", \"slope\", "
        "\"intercept\", \"noise\" or \"seed\" (did you mean \"slope\"?)");
  CHECK(builtin_error({"mnist", "", {{"classes", "10"}}, 0}) ==
        "options.classes: data set \"mnist\" has no such option; expected \"image_size\", "
        "\"random_crop\", \"random_flip\", \"mean\", \"std\", \"samples\" or \"test_samples\"");
}

TEST_CASE("an option with an invalid value is reported with what is expected") {
  const auto linear = [](const char* key, const char* value) {
    return builtin_error({"linear", "", {{key, value}}, 0});
  };
  for (const char* value : {"", "ten", "10x", "1.5", "0", "-3", "99999999999999999999"}) {
    CHECK(linear("samples", value) == "options.samples: expected an integer from 1 to 268435456");
  }
  for (const char* value : {"", "x", "nan", "inf", "1e7", "-0.1", "0.1 "}) {
    CHECK(linear("noise", value) == "options.noise: expected a number from 0 to 1e6");
  }
  CHECK(linear("seed", "-1").starts_with("options.seed: expected an integer of at least 0"));
  CHECK(linear("seed", "5") == "opened");
}

TEST_CASE("a root is refused for a data set that reads no files") {
  CHECK(builtin_error({"linear", "/data", {}, 0}) ==
        "root: data set \"linear\" is computed and reads no files; leave root out");
  CHECK(builtin_error({"synthetic", "/data", {}, 0}).starts_with("root: "));
}

TEST_CASE("linear is the line y = 2x + 3 with noise of 0.1, 10,000 and 1,000 samples") {
  const auto splits = open_builtin({"linear", "", {}, 42});
  REQUIRE(splits.train->size() == 10'000);
  CHECK(splits.test->size() == 1'000);
  CHECK(splits.train->input().shape == std::vector<int64_t>{1});
  CHECK(splits.train->target().shape == std::vector<int64_t>{1});
  CHECK(splits.train->target().type == ElementType::float32);
  CHECK(splits.train->classes().empty());

  const auto [x, y] = fetch_all<float>(*splits.train);
  double sum = 0, squares = 0, noise_sum = 0, noise_squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double noise = y[i] - (2.0 * x[i] + 3.0);
    sum += x[i];
    squares += x[i] * x[i];
    noise_sum += noise;
    noise_squares += noise * noise;
  }
  // About seven times the standard error of each.
  const auto n = static_cast<double>(x.size());
  CHECK(std::abs(sum / n) < 0.07);
  CHECK(std::abs(squares / n - 1) < 0.1);
  CHECK(std::abs(noise_sum / n) < 0.007);
  CHECK(std::abs(noise_squares / n - 0.01) < 0.001);
}

TEST_CASE("linear reads its line from the options") {
  const auto splits =
      open_builtin({"linear", "", {{"slope", "-4"}, {"intercept", "0.5"}, {"noise", "0"}, {"samples", "7"}}, 1});
  REQUIRE(splits.train->size() == 7);
  const auto [x, y] = fetch_all<float>(*splits.train);
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(y[i] == doctest::Approx(-4 * x[i] + 0.5f));
}

TEST_CASE("linear depends on the seed, and its test split differs from its training split") {
  const auto train = [](std::map<std::string, std::string> options, uint64_t seed) {
    return fetch_all<float>(*open_builtin({"linear", "", std::move(options), seed}).train);
  };
  CHECK(train({}, 42) == train({}, 42));
  CHECK(train({}, 42) != train({}, 43));
  CHECK(train({{"seed", "42"}}, 7) == train({}, 42));
  const auto splits = open_builtin({"linear", "", {{"samples", "1000"}}, 42});
  CHECK(fetch_all<float>(*splits.train) != fetch_all<float>(*splits.test));
  // The first samples do not depend on the number of samples.
  CHECK(fetch<float>(*splits.train, {0, 999}) == fetch<float>(*open_builtin({"linear", "", {}, 42}).train, {0, 999}));
}

TEST_CASE("synthetic has the requested shape, classes and sizes") {
  const auto splits = open_builtin(
      {"synthetic", "", {{"shape", "3x4x5"}, {"classes", "7"}, {"samples", "100"}, {"test_samples", "9"}}, 42});
  CHECK(splits.train->input().shape == std::vector<int64_t>{3, 4, 5});
  CHECK(splits.train->target().shape.empty());
  CHECK(splits.train->target().type == ElementType::int64);
  CHECK(splits.train->classes().size() == 7);
  CHECK(splits.train->size() == 100);
  CHECK(splits.test->size() == 9);
  const auto samples = fetch_all<int64_t>(*splits.train);
  for (const int64_t label : samples.targets) CHECK((label >= 0 && label < 7));
  CHECK(*std::max_element(samples.targets.begin(), samples.targets.end()) == 6);
}

TEST_CASE("a synthetic sample depends only on its index and the seed, and samples differ") {
  const std::map<std::string, std::string> options = {{"shape", "1x6x6"}, {"samples", "50"}};
  const auto first = open_builtin({"synthetic", "", options, 42});
  const auto again = open_builtin({"synthetic", "", options, 42});
  const auto other = open_builtin({"synthetic", "", options, 43});
  const auto forward = fetch<int64_t>(*first.train, {3, 4});
  const auto backward = fetch<int64_t>(*again.train, {4, 3});
  CHECK(std::vector(forward.inputs.begin(), forward.inputs.begin() + 36) ==
        std::vector(backward.inputs.begin() + 36, backward.inputs.end()));
  CHECK(forward.targets[0] == backward.targets[1]);
  const auto third = fetch<int64_t>(*first.train, {3}).inputs;
  CHECK(third != fetch<int64_t>(*first.train, {4}).inputs);
  CHECK(third != fetch<int64_t>(*first.test, {3}).inputs);
  CHECK(third != fetch<int64_t>(*other.train, {3}).inputs);
}

TEST_CASE("an invalid shape is refused") {
  for (const char* shape : {"", "3x", "x3", "3x-1", "0x3", "3 x 3", "3,3", "3xx3", "99999999999999999999"}) {
    CHECK(builtin_error({"synthetic", "", {{"shape", shape}}, 0})
              .starts_with("options.shape: expected extents of 1 or more"));
  }
  CHECK(builtin_error({"synthetic", "", {{"shape", "65536x65536x65536x65536"}}, 0}) ==
        "options.shape: more than 268435456 elements in a sample");
}

TEST_CASE("an index outside the data set is refused") {
  const auto splits = open_builtin({"linear", "", {{"samples", "10"}}, 42});
  CHECK_THROWS_WITH_AS(fetch<float>(*splits.train, {0, 10}),
                       "data set \"linear\": sample 10 of a data set that holds 10", Error);
  CHECK_THROWS_AS(fetch<float>(*splits.train, {-1}), Error);
}
