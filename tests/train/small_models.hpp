// Models for the tests of the train module, and ranks that train them with the fake backend.
#pragma once

#include <torch/torch.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "ddprun/plugin/model_plugin.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::train {

inline void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("wrong: " + what);
}

// fc1 (4 -> 8), relu, fc2 (8 -> 3); `unused` adds a layer that forward does not touch.
struct TwoLayers : torch::nn::Module {
  explicit TwoLayers(bool with_unused = false) {
    fc1 = register_module("fc1", torch::nn::Linear(4, 8));
    fc2 = register_module("fc2", torch::nn::Linear(8, 3));
    if (with_unused) spare = register_module("spare", torch::nn::Linear(2, 2));
  }
  torch::Tensor forward(const torch::Tensor& input) { return fc2(torch::relu(fc1(input))); }
  torch::nn::Linear fc1{nullptr}, fc2{nullptr}, spare{nullptr};
};

inline torch::Tensor loss_of(TwoLayers& model, const torch::Tensor& input) {
  return model.forward(input).square().mean();
}

inline void forget_gradients(torch::nn::Module& module) {
  for (auto& parameter : module.parameters()) parameter.mutable_grad().reset();
}

// A regression with a BatchNorm, so that there are buffers to synchronise.
class NormModel final : public Model {
 public:
  NormModel() {
    net_->push_back("norm", torch::nn::BatchNorm1d(2));
    net_->push_back("fc", torch::nn::Linear(2, 1));
  }
  torch::nn::Module& module() override { return *net_; }
  torch::Tensor forward(const torch::Tensor& input) override { return net_->forward(input); }
  torch::Tensor loss(const torch::Tensor& output, const torch::Tensor& target) override {
    return torch::mse_loss(output, target);
  }
  torch::Tensor correct(const torch::Tensor&, const torch::Tensor&) override { return {}; }

 private:
  torch::nn::Sequential net_;
};

// Records the dtypes of the output, and can have a loss whose gradient overflows float16.
class WatchedModel final : public Model {
 public:
  WatchedModel() {
    net_->push_back(torch::nn::Linear(2, 16));
    net_->push_back(torch::nn::Functional(torch::relu));
    net_->push_back(torch::nn::Linear(16, 1));
  }
  torch::nn::Module& module() override { return *net_; }
  torch::Tensor forward(const torch::Tensor& input) override {
    torch::Tensor output = net_->forward(input);
    (net_->is_training() ? trained_in : evaluated_in) = output.scalar_type();
    return output;
  }
  torch::Tensor loss(const torch::Tensor& output, const torch::Tensor& target) override {
    const torch::Tensor loss = torch::mse_loss(output, target);
    return hot ? loss * 1e20 : loss;
  }
  torch::Tensor correct(const torch::Tensor&, const torch::Tensor&) override { return {}; }

  at::ScalarType trained_in = at::kInt, evaluated_in = at::kInt;
  bool hot = false;

 private:
  torch::nn::Sequential net_;
};

}  // namespace ddprun::train
