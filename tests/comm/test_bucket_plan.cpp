#include <doctest/doctest.h>

#include <numeric>
#include <set>

#include "comm/bucket_plan.hpp"

namespace ddprun::comm {
namespace {

std::vector<std::size_t> parameters_of(const BucketPlan& plan) {
  std::vector<std::size_t> list;
  for (const Slot& slot : plan.slots) list.push_back(slot.parameter);
  return list;
}

using Indices = std::vector<std::size_t>;

TEST_CASE("a model that fits is one bucket, in the order given") {
  const auto plan = plan_buckets({{10}, {20}, {30}}, {2, 1, 0}, 1 << 20, 1 << 20);
  REQUIRE(plan.size() == 1);
  CHECK(plan[0].elements == 60);
  CHECK(parameters_of(plan[0]) == Indices{2, 1, 0});
  CHECK(plan[0].slots[1].offset == 30);
  CHECK(plan[0].slots[2].offset == 50);
}

TEST_CASE("the first bucket is complete at its own cap") {
  const auto plan = plan_buckets({{10}, {10}, {10}, {10}}, {0, 1, 2, 3}, 40, 80);
  REQUIRE(plan.size() == 3);
  CHECK(parameters_of(plan[0]) == Indices{0});
  CHECK(parameters_of(plan[1]) == Indices{1, 2});
  CHECK(parameters_of(plan[2]) == Indices{3});
}

TEST_CASE("a bucket is complete when it holds its cap or more") {
  const auto plan = plan_buckets({{1}, {1000}, {16}, {1}}, {0, 1, 2, 3}, 64, 64);
  REQUIRE(plan.size() == 3);
  CHECK(parameters_of(plan[0]) == Indices{0, 1});
  CHECK(parameters_of(plan[1]) == Indices{2});
  CHECK(parameters_of(plan[2]) == Indices{3});
}

TEST_CASE("a bucket holds one dtype, and buckets come in the order in which they are full") {
  const auto plan =
      plan_buckets({{4, DType::float32}, {4, DType::bfloat16}, {4, DType::float32}}, {0, 1, 2}, 1024, 1024);
  REQUIRE(plan.size() == 2);
  CHECK(plan[0].dtype == DType::bfloat16);
  CHECK(parameters_of(plan[0]) == Indices{1});
  CHECK(parameters_of(plan[1]) == Indices{0, 2});
}

TEST_CASE("every parameter is in one bucket, and no two overlap, for any caps") {
  std::vector<ParameterInfo> parameters;
  for (std::size_t i = 0; i < 37; ++i)
    parameters.push_back({i * i % 101, i % 5 == 0 ? DType::float64 : DType::float32});
  Indices order(parameters.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  for (const std::size_t cap : {1, 64, 500, 4096, 1 << 20}) {
    std::set<std::size_t> seen;
    for (const BucketPlan& bucket : plan_buckets(parameters, order, cap / 2, cap)) {
      std::size_t end = 0;
      for (const Slot& slot : bucket.slots) {
        CHECK(seen.insert(slot.parameter).second);
        CHECK(parameters[slot.parameter].dtype == bucket.dtype);
        CHECK(slot.offset == end);
        end += parameters[slot.parameter].elements;
      }
      CHECK(end == bucket.elements);
      CHECK(bucket.slots.back().offset * size_of(bucket.dtype) < cap);
    }
    CHECK(seen.size() == parameters.size());
  }
}

}  // namespace
}  // namespace ddprun::comm
