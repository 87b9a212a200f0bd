#include "support/torch_test.hpp"

#include <limits>

#include "train/grad_scaler.hpp"

namespace ddprun::train {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST_CASE("gradients are divided by the scale, and the infinite or NaN among them found") {
  const GradScaler scaler({8, 0});
  const std::vector<torch::Tensor> gradients{torch::tensor({8.0f, -4.0f}), torch::tensor({16.0f})};
  CHECK(scaler.unscale(gradients));
  CHECK(torch::equal(gradients[0], torch::tensor({1.0f, -0.5f})));
  CHECK(torch::equal(gradients[1], torch::tensor({2.0f})));
  for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
    CHECK_FALSE(scaler.unscale({torch::tensor({1.0f}), torch::tensor({1.0f, bad})}));
  }
}

TEST_CASE("the scale halves with each overflow, and doubles after 2000 steps without one") {
  GradScaler scaler;
  CHECK(scaler.scale() == 65536);
  scaler.update(true);
  CHECK(scaler.scale() == 32768);
  for (int step = 0; step < 1999; ++step) scaler.update(false);
  CHECK(scaler.scale() == 32768);
  CHECK(scaler.state().growth_tracker == 1999);
  scaler.update(false);
  CHECK(scaler.scale() == 65536);
  CHECK(scaler.state().growth_tracker == 0);
  scaler.update(false);
  scaler.update(true);  // begins the count anew
  CHECK(scaler.scale() == 32768);
  CHECK(scaler.state().growth_tracker == 0);
}

TEST_CASE("a scaler goes on from another's state") {
  GradScaler scaler({1024, 1999});
  scaler.update(false);
  CHECK(scaler.scale() == 2048);
}

}  // namespace
}  // namespace ddprun::train
