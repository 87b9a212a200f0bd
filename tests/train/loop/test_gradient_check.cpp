#include "support/torch_test.hpp"

#include "support/error_of.hpp"
#include "train/loop/policies.hpp"

namespace ddprun::train {
namespace {

using testing::error_of;
using Then = GradientCheck::Then;

NamedTensor parameter(const std::string& name, std::vector<float> gradient) {
  const auto size = static_cast<int64_t>(gradient.size());
  torch::Tensor tensor = torch::zeros({size}, torch::requires_grad());
  tensor.mutable_grad() = torch::tensor(gradient);
  return {name, tensor};
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity(),
                kMax = std::numeric_limits<float>::max();

TEST_CASE("finite gradients pass, even if their sum overflows") {
  GradientCheck check({parameter("a", {1, -2, 3}), parameter("b", {kMax, kMax}), parameter("empty", {})}, Then::stop);
  CHECK_FALSE(check.skips_step(1));
}

TEST_CASE("a parameter without a gradient passes") {
  GradientCheck check({{"a", torch::zeros({2}, torch::requires_grad())}}, Then::stop);
  CHECK_FALSE(check.skips_step(1));
}

TEST_CASE("the first gradient that is not finite is named") {
  const auto stopped = [](std::vector<NamedTensor> parameters) {
    GradientCheck check(std::move(parameters), Then::stop);
    return error_of([&] { check.skips_step(3); });
  };
  CHECK(stopped({parameter("a", {1}), parameter("b", {1, kNan}), parameter("c", {kNan})}) ==
        "1: the gradient of b is nan; a smaller optimizer.lr usually helps; the weights are those before this step");
  CHECK(stopped({parameter("a", {kInfinity, 1})}).starts_with("1: the gradient of a is infinite;"));
  CHECK(stopped({parameter("a", {kInfinity, -kInfinity})}).starts_with("1: the gradient of a is infinite;"));
}

TEST_CASE("with skip, the step is left out") {
  GradientCheck check({parameter("a", {kNan})}, Then::skip);
  CHECK(check.skips_step(1));
}

}  // namespace
}  // namespace ddprun::train
