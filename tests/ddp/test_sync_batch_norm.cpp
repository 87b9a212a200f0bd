// Synchronized BatchNorm in a program that is not ours.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "ddp/launched.hpp"

namespace ddprun::testing {
namespace {

using Differences = std::array<double, 4>;

// Each "rank R NAME: A B C D" line, on one rank, two and three.
void for_each_line(const std::string& act, int lines_of_rank,
                   const std::function<void(const std::string& name, const Differences& apart)>& check) {
  for (const int ranks : {1, 2, 3}) {
    const Words lines = lines_of(run(ranks, act));
    CHECK(lines.size() == static_cast<std::size_t>(lines_of_rank * ranks));
    for (const std::string& line : lines) {
      CAPTURE(ranks);
      CAPTURE(line);
      Differences apart{};
      char name[40] = "";
      REQUIRE(std::sscanf(line.c_str(), "rank %*d %39[^:]: %lf %lf %lf %lf", name, &apart[0], &apart[1], &apart[2],
                          &apart[3]) == 5);
      check(name, apart);
    }
  }
}

TEST_CASE("parts of a batch give what the whole batch gives one rank") {
  for_each_line("train", 10, [](const std::string& name, const Differences& apart) {
    // Parameters, buffers and gradients after five steps; the values are around 1.
    const double tolerance = name == "autocast" ? 0.05 : contains(name, "float") ? 1e-5 : 1e-13;
    CHECK(*std::max_element(apart.begin(), apart.end()) < tolerance);
  });
}

TEST_CASE("statistics of half precision are float32") {
  for_each_line("half", 2, [](const std::string& name, const Differences& apart) {
    CHECK(apart[0] < 1e-6);                              // running statistics
    CHECK(apart[1] < (name == "Half" ? 0.002 : 0.016));  // output: one rounding of its dtype
    CHECK(apart[2] < 1e-3);                              // gradients of weight and bias: sums of 200 values
    CHECK(apart[3] < (name == "Half" ? 0.002 : 0.016));
  });
}

TEST_CASE("what is not converted, and eval mode, are as before, bit for bit") {
  for (const int ranks : {1, 2}) {
    const auto result = run(ranks, "ordinary");
    CHECK_MESSAGE(result.code == 0, result.err);
    CHECK(contains(result.out, "as before"));
  }
}

TEST_CASE("forward without gradients is synchronized in training mode") {
  const auto result = run(3, "without_gradients");
  REQUIRE_MESSAGE(result.code == 0, result.err);
  for (const char* line : {"rank 0: 0.1000 0.1000\n", "rank 1: 0.1000 0.1000\n", "rank 2: 0.1000 0.1000\n"}) {
    CHECK_MESSAGE(contains(result.out, line), result.out);
  }
}

TEST_CASE("errors are one line") {
  const auto unnamed = run(2, "unnamed");
  CHECK(unnamed.code == 2);
  CHECK_MESSAGE(contains(unnamed.err, "\"1\" has neither parameters nor running statistics"), unnamed.err);
  const auto twice = run(2, "twice");
  CHECK(twice.code == 2);
  CHECK_MESSAGE(contains(twice.err, "create_graph: a synchronized BatchNorm has no second derivative"), twice.err);
  const auto ended = run(2, "ended");
  CHECK(ended.code == 2);
  CHECK_MESSAGE(contains(ended.err, "the BatchNorm is synchronized over a group that has ended"), ended.err);
}

}  // namespace
}  // namespace ddprun::testing
