#include "support/torch_test.hpp"

#include "comm/group.hpp"
#include "train/optim/precision.hpp"

namespace ddprun::train {
namespace {

TEST_CASE("float32 leaves the loss as it is, and has nothing to save") {
  const Precision precision(Amp::off, torch::kCPU, nullptr);
  const torch::Tensor loss = torch::tensor(2.0F);
  CHECK_FALSE(precision.scales());
  CHECK(precision.scaled(loss, 1).is_same(loss));
  CHECK(precision.scaled(loss, 0.5).item<float>() == 1);
  std::map<std::string, double> numbers;
  precision.save(numbers);
  CHECK(numbers.empty());
}

TEST_CASE("float16 scales the loss, unscales the gradients, and skips a step that overflowed") {
  Precision precision(Amp::fp16, torch::kCPU, nullptr);
  REQUIRE(precision.scales());
  CHECK(precision.scaled(torch::tensor(1.0F), 0.5).item<float>() == 32768);

  record::StepRecord record;
  torch::Tensor scale, overflow;
  std::vector<torch::Tensor> gradients{torch::full({3}, 65536.0F)};
  CHECK(precision.unscale(gradients, comm::Group(), record, scale, overflow));
  CHECK(gradients[0][0].item<float>() == 1);
  CHECK(record.skipped == 0);
  CHECK(record.scale == 65536);

  gradients[0][1] = std::numeric_limits<float>::infinity();
  CHECK_FALSE(precision.unscale(gradients, comm::Group(), record, scale, overflow));
  CHECK(record.skipped == 1);
  CHECK(precision.scaled(torch::tensor(1.0F), 1).item<float>() == 32768);
}

TEST_CASE("a resumed run continues with the saved scale") {
  Precision before(Amp::fp16, torch::kCPU, nullptr);
  record::StepRecord record;
  torch::Tensor scale, overflow;
  before.unscale({torch::full({1}, std::numeric_limits<float>::infinity())}, comm::Group(), record, scale, overflow);
  std::map<std::string, double> numbers;
  before.save(numbers);
  Precision after(Amp::fp16, torch::kCPU, nullptr);
  after.restore(numbers);
  CHECK(after.scaled(torch::tensor(1.0F), 1).item<float>() == 32768);
}

}  // namespace
}  // namespace ddprun::train
