#include "support/torch_test.hpp"

#include "train/optim/optimizers.hpp"

namespace ddprun::train {
namespace {

std::vector<NamedTensor> one_parameter() {
  return {{"w", torch::ones({2}, torch::requires_grad())}};
}

TEST_CASE("each optimizer gets its options") {
  OptimizerOptions settings;
  settings.lr = 0.1;
  settings.weight_decay = 0.01;
  settings.momentum = 0.9;
  settings.nesterov = true;
  settings.betas = {0.8, 0.95};
  settings.eps = 1e-6;

  settings.name = "sgd";
  auto sgd = make_optimizer(settings, one_parameter());
  const auto& of_sgd = static_cast<torch::optim::SGDOptions&>(sgd->param_groups()[0].options());
  CHECK(of_sgd.lr() == 0.1);
  CHECK(of_sgd.momentum() == 0.9);
  CHECK(of_sgd.nesterov());
  CHECK(of_sgd.weight_decay() == 0.01);

  settings.name = "adam";
  auto adam = make_optimizer(settings, one_parameter());
  const auto& of_adam = static_cast<torch::optim::AdamOptions&>(adam->param_groups()[0].options());
  CHECK(of_adam.betas() == std::tuple<double, double>{0.8, 0.95});
  CHECK(of_adam.eps() == 1e-6);

  settings.name = "adamw";
  auto adamw = make_optimizer(settings, one_parameter());
  CHECK(dynamic_cast<torch::optim::AdamW*>(adamw.get()) != nullptr);
}

// After `steps` steps with gradients that differ between steps and elements.
std::vector<torch::Tensor> stepped(torch::optim::Optimizer& optimizer, int steps) {
  std::vector<torch::Tensor>& parameters = optimizer.param_groups()[0].params();
  torch::manual_seed(7);
  for (int step = 0; step < steps; ++step) {
    for (torch::Tensor& parameter : parameters) parameter.mutable_grad() = torch::randn_like(parameter);
    optimizer.step();
  }
  return parameters;
}

template <class Theirs, class Options>
void check_follows(const char* name) {
  OptimizerOptions options;
  options.name = name;
  options.lr = 0.1;
  options.weight_decay = 0.3;
  const auto ours = make_optimizer(options, one_parameter());
  Theirs theirs({one_parameter()[0].tensor}, Options(0.1).weight_decay(0.3));
  const torch::Tensor expected = stepped(theirs, 20).at(0);
  CHECK(torch::allclose(stepped(*ours, 20).at(0), expected, 1e-5, 0));
  CHECK_FALSE(torch::allclose(expected, one_parameter()[0].tensor));
}

TEST_CASE("the optimizers match LibTorch's except for rounding") {
  check_follows<torch::optim::SGD, torch::optim::SGDOptions>("sgd");
  check_follows<torch::optim::Adam, torch::optim::AdamOptions>("adam");
  check_follows<torch::optim::AdamW, torch::optim::AdamWOptions>("adamw");
}

TEST_CASE("the optimizers do not change a parameter without a gradient") {
  for (const char* name : {"sgd", "adam", "adamw"}) {
    OptimizerOptions options;
    options.name = name;
    options.weight_decay = 0.5;
    const auto parameters = one_parameter();
    make_optimizer(options, parameters)->step();
    CHECK(torch::equal(parameters[0].tensor, torch::ones({2})));
  }
}

// c10d gives every parameter a gradient; without it, a parameter's first gradient may come in a later step.
TEST_CASE("a parameter whose first gradient comes late is updated as LibTorch updates it") {
  namespace optim = torch::optim;
  for (const char* name : {"sgd", "adam"}) {
    std::vector<torch::Tensor> results;
    for (const bool ours : {false, true}) {
      OptimizerOptions options;
      options.name = name;
      options.momentum = 0.9;
      const std::vector<NamedTensor> parameters = {one_parameter()[0], one_parameter()[0]};
      const std::vector<torch::Tensor> tensors = {parameters[0].tensor, parameters[1].tensor};
      std::unique_ptr<optim::Optimizer> optimizer = std::make_unique<optim::Adam>(tensors, optim::AdamOptions(0.01));
      if (options.name == "sgd") {
        optimizer = std::make_unique<optim::SGD>(tensors, optim::SGDOptions(0.01).momentum(0.9));
      }
      if (ours) optimizer = make_optimizer(options, parameters);
      for (int step = 0; step < 3; ++step) {
        parameters[0].tensor.mutable_grad() = torch::full({2}, 0.5);
        if (step > 0) parameters[1].tensor.mutable_grad() = torch::full({2}, -0.25);
        optimizer->step();
      }
      results.push_back(torch::stack({parameters[0].tensor.detach(), parameters[1].tensor.detach()}));
    }
    CHECK(torch::allclose(results[0], results[1], 1e-6, 0));
    CHECK_FALSE(torch::equal(results[1], torch::ones({2, 2})));
  }
}

TEST_CASE("a gradient may have another memory layout than its parameter") {
  for (const char* name : {"sgd", "adam"}) {
    std::vector<torch::Tensor> results;
    for (const auto layout : {torch::MemoryFormat::Contiguous, torch::MemoryFormat::ChannelsLast}) {
      OptimizerOptions options;
      options.name = name;
      const std::vector<NamedTensor> parameters = {{"w", torch::ones({2, 3, 2, 2}, torch::requires_grad())}};
      const auto optimizer = make_optimizer(options, parameters);
      parameters[0].tensor.mutable_grad() = torch::arange(24.).view({2, 3, 2, 2}).contiguous(layout);
      optimizer->step();
      results.push_back(parameters[0].tensor.detach().clone());
    }
    CHECK(torch::equal(results[0], results[1]));
  }
}

}  // namespace
}  // namespace ddprun::train
