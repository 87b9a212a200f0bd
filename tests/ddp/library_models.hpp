// The models of library_parity.py and their loss, with their parameters in the same order. C++ may compute the right
// side of a + first: modules are called in statements of their own, because gradients come in the reverse order of the
// calls.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ddp/checkpoint.hpp"

namespace parity {

namespace nn = torch::nn;
using torch::Tensor;

struct Model : nn::Module {
  virtual Tensor run(const std::vector<Tensor>& inputs) = 0;
};

struct SimpleNet : Model {
  Tensor run(const std::vector<Tensor>& inputs) override { return fc2->forward(torch::relu(fc1->forward(inputs[0]))); }
  nn::Linear fc1 = register_module("fc1", nn::Linear(784, 256)), fc2 = register_module("fc2", nn::Linear(256, 10));
};

// Rank 1 does not use `extra`; no rank uses `idle`.
struct Partly : Model {
  explicit Partly(int rank) : rank(rank) {}
  Tensor run(const std::vector<Tensor>& inputs) override {
    const Tensor x = torch::relu(fc1->forward(inputs[0]));
    const Tensor y = fc2->forward(x);
    return rank == 1 ? y : y + extra->forward(x);
  }
  int rank;
  nn::Linear fc1 = register_module("fc1", nn::Linear(784, 32)), idle = register_module("idle", nn::Linear(32, 10)),
             extra = register_module("extra", nn::Linear(32, 10)), fc2 = register_module("fc2", nn::Linear(32, 10));
};

// The hidden layer is used twice, each time checkpointed.
struct Checkpointed : Model {
  Tensor run(const std::vector<Tensor>& inputs) override {
    Tensor x = torch::tanh(fc1->forward(inputs[0]));
    for (int i = 0; i < 2; ++i) x = torch::tanh(program::Checkpoint::apply(x, hidden.get()));
    return fc2->forward(x);
  }
  nn::Linear fc1 = register_module("fc1", nn::Linear(784, 32)), hidden = register_module("hidden", nn::Linear(32, 32)),
             fc2 = register_module("fc2", nn::Linear(32, 10));
};

inline nn::Conv2d convolution(int64_t in, int64_t out, int64_t size, int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, size).stride(stride).padding(size / 2).bias(false));
}

struct ResidualImpl : nn::Module {
  ResidualImpl(int64_t in, int64_t out, int64_t stride)
      : body(convolution(in, out, 3, stride), nn::BatchNorm2d(out), nn::ReLU(), convolution(out, out, 3, 1),
             nn::BatchNorm2d(out)) {
    register_module("body", body);
    if (stride > 1) shortcut = nn::Sequential(convolution(in, out, 1, stride), nn::BatchNorm2d(out));
    register_module("shortcut", shortcut);
  }
  Tensor forward(const Tensor& x) {
    const Tensor y = body->forward(x);
    return torch::relu(y + (shortcut->is_empty() ? x : shortcut->forward(x)));
  }
  nn::Sequential body, shortcut;
};
TORCH_MODULE(Residual);

struct ResNet : Model {
  Tensor run(const std::vector<Tensor>& inputs) override { return layers->forward(inputs[0]); }
  nn::Sequential layers =
      register_module("layers", nn::Sequential(convolution(3, 16, 3, 1), nn::BatchNorm2d(16), nn::ReLU(),
                                               Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 64, 2),
                                               nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(64, 10)));
};

struct BlockImpl : nn::Module {
  Tensor forward(const Tensor& x) {
    std::vector<Tensor> parts;  // query, key, value; [batch, heads, positions, width of a head]
    for (const Tensor& part : qkv->forward(norm1->forward(x)).chunk(3, -1)) {
      parts.push_back(part.unflatten(-1, {2, 16}).transpose(1, 2));
    }
    const Tensor heads = torch::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
    const Tensor y = x + out->forward(heads.transpose(1, 2).flatten(2));
    return y + down->forward(torch::gelu(up->forward(norm2->forward(y))));
  }
  nn::LayerNorm norm1 = register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({32})));
  nn::Linear qkv = register_module("qkv", nn::Linear(32, 96)), out = register_module("out", nn::Linear(32, 32));
  nn::LayerNorm norm2 = register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({32})));
  nn::Linear up = register_module("up", nn::Linear(32, 128)), down = register_module("down", nn::Linear(128, 32));
};
TORCH_MODULE(Block);

// Causal. Two inputs: tokens, and their positions.
struct Transformer : Model {
  Tensor run(const std::vector<Tensor>& inputs) override {
    const Tensor x = tokens->forward(inputs[0]);
    return head->forward(blocks->forward(x + positions->forward(inputs[1])));
  }
  nn::Embedding tokens = register_module("tokens", nn::Embedding(64, 32)),
                positions = register_module("positions", nn::Embedding(16, 32));
  nn::Sequential blocks = register_module("blocks", nn::Sequential(Block(), Block()));
  nn::Linear head = register_module("head", nn::Linear(32, 64));
};

// The loss of the `batch`-th part of `size` samples.
inline Tensor loss_of(Model& model, const std::vector<Tensor>& inputs, const Tensor& targets, int64_t batch,
                      int64_t size) {
  std::vector<Tensor> part;
  for (const Tensor& all : inputs) part.push_back(all.narrow(0, batch * size, size));
  return nn::functional::cross_entropy(model.run(part).flatten(0, -2), targets.narrow(0, batch * size, size).flatten());
}

inline std::unique_ptr<Model> make_model(const std::string& name, int rank) {
  if (name == "simplenet") return std::make_unique<SimpleNet>();
  if (name == "partly") return std::make_unique<Partly>(rank);
  if (name == "checkpointed") return std::make_unique<Checkpointed>();
  if (name == "resnet") return std::make_unique<ResNet>();
  if (name == "transformer") return std::make_unique<Transformer>();
  throw std::invalid_argument("no model \"" + name + "\"");
}

}  // namespace parity
