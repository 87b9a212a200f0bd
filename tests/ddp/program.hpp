// What the acts of the program share: a net, samples, and what they print. tests/ddp/program.cpp
#pragma once

#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ddprun/ddp.hpp"

namespace program {

using torch::Tensor;
using Acts = std::map<std::string, std::function<void(const ddprun::Group&)>>;

// By name. Each prints what the test compares.
Acts training_acts();
Acts virtual_acts();
Acts graph_acts();
Acts join_acts();
Acts hook_acts();
Acts module_acts();

struct Net : torch::nn::Module {
  explicit Net(int64_t hidden = 8, bool with_unused = false, bool with_norm = false) {
    first = register_module("first", torch::nn::Linear(4, hidden));
    if (with_norm) norm = register_module("norm", torch::nn::BatchNorm1d(hidden));
    second = register_module("second", torch::nn::Linear(hidden, 3));
    if (with_unused) unused = register_module("unused", torch::nn::Linear(2, 2));
  }
  Tensor forward(const Tensor& input) {
    Tensor x = first->forward(input);
    if (norm) x = norm->forward(x);
    return second->forward(torch::relu(x));
  }
  torch::nn::Linear first{nullptr}, second{nullptr}, unused{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};

// 24 samples, the same on every rank.
inline Tensor inputs() {
  torch::manual_seed(5);
  return torch::randn({24, 4});
}
inline Tensor targets() {
  return torch::arange(24).remainder(3);
}

inline void print_state(const ddprun::Group& group, torch::nn::Module& module) {
  double sum = 0, squares = 0;
  for (const Tensor& tensor : module.parameters()) {
    sum += tensor.sum().item<double>();
    squares += tensor.square().sum().item<double>();
  }
  for (const Tensor& tensor : module.buffers()) sum += tensor.to(torch::kFloat64).sum().item<double>();
  std::printf("rank %d of %d: %.9f %.9f\n", group.rank(), group.size(), sum, squares);
}

inline Tensor part_of(const ddprun::Group& group, const Tensor& all) {
  return all.chunk(group.size())[static_cast<std::size_t>(group.rank())];
}

inline Tensor loss_of(Net& net, const Tensor& input, const Tensor& target) {
  return torch::nn::functional::cross_entropy(net.forward(input), target);
}

// Each rank has its part of the samples. Prints the state.
inline void train_ten_steps(const ddprun::Group& group, Net& net) {
  torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < 10; ++step) {
    sgd.zero_grad();
    loss_of(net, part_of(group, inputs()), part_of(group, targets())).backward();
    sgd.step();
  }
  print_state(group, net);
}

}  // namespace program
