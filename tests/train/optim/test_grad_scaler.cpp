#include "support/torch_test.hpp"

#include <limits>

#include "train/optim/precision.hpp"

namespace ddprun::train {
namespace {

// The result of unscale().
torch::Tensor flag(bool overflow) {
  return torch::full({}, overflow ? 1 : 0, torch::kFloat32);
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST_CASE("gradients are divided by the scale, and infinite or NaN ones are detected") {
  const LossScale scaler(torch::kCPU, {.init_scale = 8});
  const std::vector<torch::Tensor> gradients{torch::tensor({8.0f, -4.0f}), torch::tensor({16.0f})};
  CHECK(scaler.unscale(gradients).item<float>() == 0);
  CHECK(torch::equal(gradients[0], torch::tensor({1.0f, -0.5f})));
  CHECK(torch::equal(gradients[1], torch::tensor({2.0f})));
  for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
    CHECK(scaler.unscale({torch::tensor({1.0f}), torch::tensor({1.0f, bad})}).item<float>() == 1);
  }
}

TEST_CASE("the scale halves with each overflow, and doubles after 2000 steps without one") {
  LossScale scaler(torch::kCPU);
  CHECK(scaler.state().scale == 65536);
  scaler.update(flag(true));
  CHECK(scaler.state().scale == 32768);
  for (int step = 0; step < 1999; ++step) scaler.update(flag(false));
  CHECK(scaler.state().scale == 32768);
  CHECK(scaler.state().growth_tracker == 1999);
  scaler.update(flag(false));
  CHECK(scaler.state().scale == 65536);
  CHECK(scaler.state().growth_tracker == 0);
  scaler.update(flag(false));
  scaler.update(flag(true));  // restarts the count
  CHECK(scaler.state().scale == 32768);
  CHECK(scaler.state().growth_tracker == 0);
}

TEST_CASE("a scaler continues from another's state") {
  LossScale scaler(torch::kCPU, {.init_scale = 1024}, 1999);
  scaler.update(flag(false));
  CHECK(scaler.state().scale == 2048);
}

}  // namespace
}  // namespace ddprun::train
