// Models, losses and optimizers have the same results on the fake device as on the CPU, bit for bit.
#include "torch_test.hpp"

#include <ATen/autocast_mode.h>

#include <functional>

namespace ddprun::fake_gpu {
namespace {

using torch::Device;
using torch::Tensor;
namespace nn = torch::nn;

// Runs `body` on the CPU and on the device, with the same seed: the largest difference; infinite if the result is not
// on its device or has another shape.
double distance(const std::function<Tensor(Device)>& body) {
  torch::manual_seed(1);
  const Tensor expected = body(torch::kCPU);
  torch::manual_seed(1);
  const Tensor got = body(kGpu);
  if (got.device() != kGpu || got.sizes() != expected.sizes() || got.dtype() != expected.dtype()) return INFINITY;
  return (got.cpu().to(torch::kDouble) - expected.to(torch::kDouble)).abs().max().item<double>();
}

struct Training {
  bool adam = false;
  std::optional<torch::ScalarType> amp{};
};

// The last loss, parameters and buffers after three steps.
Tensor trained(nn::Sequential net, Tensor input, Device device, const Training& training = {}) {
  net->to(device);
  input = input.to(device);
  const Tensor labels = torch::arange(input.size(0)).remainder(10).to(device);
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (training.adam) {
    optimizer = std::make_unique<torch::optim::Adam>(net->parameters());
  } else {
    optimizer = std::make_unique<torch::optim::SGD>(net->parameters(),
                                                    torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(1e-4));
  }
  std::vector<Tensor> values;
  for (int step = 0; step < 3; ++step) {
    optimizer->zero_grad();
    at::autocast::set_autocast_enabled(device.type(), training.amp.has_value());
    if (training.amp) at::autocast::set_autocast_dtype(device.type(), *training.amp);
    const Tensor loss = nn::functional::cross_entropy(net->forward(input), labels);
    at::autocast::set_autocast_enabled(device.type(), false);
    at::autocast::clear_cache();
    loss.backward();
    optimizer->step();
    values = {loss.detach().reshape({1}).to(torch::kFloat)};
  }
  for (const Tensor& one : net->parameters()) values.push_back(one.detach().reshape({-1}));
  for (const Tensor& one : net->buffers()) values.push_back(one.reshape({-1}).to(torch::kFloat));
  return torch::cat(values);
}

nn::Sequential pictures() {
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(3, 8, 3).padding(1).bias(false)), nn::BatchNorm2d(8), nn::ReLU(),
                        nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)), nn::Conv2d(8, 16, 3),
                        nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(16, 10));
}

Tensor ones(Device device, std::int64_t count = 3) {
  return torch::ones({count}, device);
}

TEST_CASE("Torch finds the devices") {
  CHECK(torch::cuda::is_available());
  CHECK(torch::cuda::device_count() == 2);
  CHECK((ones(kGpu) + 1).device() == kGpu);
}

TEST_CASE("arithmetic, views, random numbers and shapes") {
  CHECK(distance([](Device device) {
          const Tensor some = torch::arange(12, device).view({3, 4}).t().slice(0, 1, 3);
          some.add_(1);
          return some.reshape({-1}).unsqueeze(0);
        }) == 0);
  CHECK(distance([](Device device) { return torch::randn({20}, device) + torch::rand({20}, device); }) == 0);
  CHECK(distance([](Device device) { return torch::dropout(ones(device, 20), 0.5, true); }) == 0);
  CHECK(distance([](Device device) { return torch::randperm(20, device); }) == 0);
  CHECK(distance([](Device device) {
          Tensor grown = torch::empty({0}, device);
          at::add_out(grown, ones(device), ones(device));
          grown.resize_({10}).fill_(3);
          Tensor same = torch::empty({0}, device);
          same.set_(grown);
          same.add_(1);
          return grown;
        }) == 0);
  CHECK(distance([](Device device) {
          const Tensor some = torch::arange(12, device).view({3, 4});
          const Tensor rows = torch::tensor({0, 2}).to(device);
          return torch::cat({some.index_select(0, rows).reshape({-1}), some.index({rows}).reshape({-1}),
                             some.unbind(0)[1], some.masked_select(some > 3), some.nonzero().reshape({-1}),
                             some.argmax(1), std::get<0>(some.topk(2)).reshape({-1}),
                             torch::chunk(some, 2, 1)[1].reshape({-1})});
        }) == 0);
}

TEST_CASE("models train as on the CPU") {
  const auto mlp = [] { return nn::Sequential(nn::Flatten(), nn::Linear(48, 16), nn::ReLU(), nn::Linear(16, 10)); };
  CHECK(distance([&](Device device) { return trained(mlp(), torch::randn({8, 3, 4, 4}), device); }) == 0);
  CHECK(distance([](Device device) { return trained(pictures(), torch::randn({8, 3, 16, 16}), device); }) == 0);
  CHECK(distance([](Device device) {
          const auto net = pictures();
          for (auto& one : net->parameters()) {
            if (one.dim() == 4) one.set_data(one.contiguous(at::MemoryFormat::ChannelsLast));
          }
          return trained(net, torch::randn({8, 3, 16, 16}).contiguous(at::MemoryFormat::ChannelsLast), device);
        }) == 0);
  CHECK(distance([](Device device) {
          return trained(pictures(), torch::randn({8, 3, 16, 16}), device, {.adam = true});
        }) == 0);
}

TEST_CASE("results of half precision are close: autocast's lists differ between CUDA and the CPU") {
  for (const auto dtype : {torch::kBFloat16, torch::kHalf}) {
    CHECK(distance([&](Device device) {
            return trained(pictures(), torch::randn({8, 3, 16, 16}), device, {.amp = dtype});
          }) < 0.02);
  }
}

TEST_CASE("fused optimizers, lists of tensors, and the scaler's operators") {
  CHECK(distance([](Device device) {
          std::vector<Tensor> weights{ones(device)}, gradients{ones(device)}, momenta{torch::zeros({3}, device)};
          for (const bool is_first : {true, false}) {
            at::_fused_sgd_(weights, gradients, momenta, 0.1, 0.9, 0.1, 0, false, false, is_first);
          }
          return weights[0];
        }) == 0);
  CHECK(distance([](Device device) {
          std::vector<Tensor> weights{ones(device)}, gradients{ones(device)}, first{torch::zeros({3}, device)},
              second{torch::zeros({3}, device)}, largest, steps{torch::ones({}, device)};
          at::_fused_adamw_(weights, gradients, first, second, largest, steps, 0.1, 0.9, 0.99, 0.1, 1e-8, false, false);
          return weights[0];
        }) == 0);
  CHECK(distance([](Device device) {
          std::vector<Tensor> gradients{ones(device), ones(device, 4)};
          at::_foreach_mul_(gradients, 2.0);
          return torch::stack(at::_foreach_norm(gradients, 2));
        }) == 0);
  CHECK(distance([](Device device) {
          std::vector<Tensor> gradients{torch::full({3}, INFINITY, device)};
          Tensor found = torch::zeros({}, device), scale = torch::full({}, 8., device);
          Tensor growth = torch::zeros({}, torch::TensorOptions(device).dtype(torch::kInt));
          at::_amp_foreach_non_finite_check_and_unscale_(gradients, found, torch::full({}, 0.5, device));
          at::_amp_update_scale_(scale, growth, found, 2, 0.5, 1);
          return scale;
        }) == 0);
}

TEST_CASE("each device has its own random generator") {
  torch::manual_seed(3);
  const Tensor host = torch::rand({4});
  const Tensor first = torch::rand({4}, kGpu).cpu();
  CHECK(first.equal(host));
  CHECK_FALSE(torch::rand({4}).equal(host));
  auto generator = at::globalContext().defaultGenerator(kGpu);
  const Tensor state = generator.get_state();
  const Tensor second = torch::rand({4}, kGpu).cpu();
  generator.set_state(state);
  CHECK(torch::rand({4}, kGpu).cpu().equal(second));
}

TEST_CASE("tensors of the CPU or of another device are refused, as on a real device") {
  CHECK_THROWS_AS(ones(kGpu) + ones(torch::kCPU), c10::Error);
  CHECK_THROWS_AS(ones(kGpu) + ones({torch::kCUDA, 1}), c10::Error);
  CHECK_THROWS_AS(ones({torch::kCUDA, 2}), c10::Error);
  CHECK((ones(kGpu) + torch::tensor(1.0)).device() == kGpu);
}

TEST_CASE("unwritten memory is NaN, and memory that Torch did not allocate can be used") {
  CHECK(torch::empty({3}, kGpu).isnan().all().item<bool>());
  float values[] = {1, 2, 3};
  const Tensor foreign = torch::from_blob(
      values, {3}, [](void*) {}, torch::TensorOptions(kGpu));
  foreign.mul_(2);
  CHECK(values[2] == 6);
}

}  // namespace
}  // namespace ddprun::fake_gpu
