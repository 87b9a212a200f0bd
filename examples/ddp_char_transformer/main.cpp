// A small Transformer learns to write the text of a file, character by character. Its forward takes two inputs.
//   ddprun launch -n 2 build/ddp_char_transformer [FILE] [STEPS]
#include <ddprun/ddp.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

using torch::Tensor;

constexpr int64_t kContext = 64, kWidth = 48, kHeads = 4, kBlocks = 2;
constexpr int64_t kBatch = 32;  // sequences in the global batch, if the world size divides it
constexpr int kWarmUp = 50;     // steps
constexpr double kLearningRate = 5e-3;

// Attention to earlier characters, then two linear layers: residual branches with LayerNorm first (Xiong et al. 2020).
struct Block : torch::nn::Module {
  Block()
      : attention_norm(register_module("attention_norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})))),
        linear_norm(register_module("linear_norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})))),
        qkv(register_module("qkv", torch::nn::Linear(kWidth, 3 * kWidth))),
        output(register_module("output", torch::nn::Linear(kWidth, kWidth))),
        wide(register_module("wide", torch::nn::Linear(kWidth, 4 * kWidth))),
        narrow(register_module("narrow", torch::nn::Linear(4 * kWidth, kWidth))) {}

  Tensor forward(Tensor x) {  // [sequences, characters, kWidth]
    const auto parts = qkv(attention_norm(x)).view({x.size(0), x.size(1), 3, kHeads, -1}).permute({2, 0, 3, 1, 4});
    const Tensor mixed = torch::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, /*is_causal=*/true);
    x = x + output(mixed.transpose(1, 2).flatten(2));
    return x + narrow(torch::gelu(wide(linear_norm(x))));
  }

  torch::nn::LayerNorm attention_norm, linear_norm;
  torch::nn::Linear qkv, output, wide, narrow;
};

struct Transformer : torch::nn::Module {
  explicit Transformer(int64_t characters)
      : token(register_module("token", torch::nn::Embedding(characters, kWidth))),
        position(register_module("position", torch::nn::Embedding(kContext, kWidth))),
        norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})))),
        next(register_module("next", torch::nn::Linear(kWidth, characters))) {
    for (int64_t i = 0; i < kBlocks; ++i) blocks->push_back(std::make_shared<Block>());
    register_module("blocks", blocks);
  }

  // Both are [sequences, characters]. Returns the logits of each next character.
  Tensor forward(const Tensor& tokens, const Tensor& positions) {
    Tensor x = token(tokens) + position(positions);
    for (const auto& block : *blocks) x = block->as<Block>()->forward(x);
    return next(norm(x));
  }

  torch::nn::Embedding token, position;
  torch::nn::ModuleList blocks;
  torch::nn::LayerNorm norm;
  torch::nn::Linear next;
};

// A text as numbers: the place of each character in the sorted list of all that occur.
struct Text {
  explicit Text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    TORCH_CHECK(text.size() > kContext, path, ": not a text of more than ", kContext, " characters");
    const std::set<char> used(text.begin(), text.end());
    characters.assign(used.begin(), used.end());
    tokens = torch::empty(static_cast<int64_t>(text.size()), torch::kInt64);
    std::transform(text.begin(), text.end(), tokens.data_ptr<int64_t>(),
                   [&](char c) { return static_cast<int64_t>(characters.find(c)); });
  }
  std::string characters;
  Tensor tokens;
};

std::string write(Transformer& net, const Text& text, int64_t length) {
  const torch::NoGradGuard no_grad;
  Tensor tokens = text.tokens.narrow(0, 0, 1).unsqueeze(0);
  std::string written;
  for (int64_t i = 0; i < length; ++i) {
    const Tensor recent =
        tokens.narrow(1, std::max<int64_t>(0, tokens.size(1) - kContext), std::min(tokens.size(1), kContext));
    const Tensor logits = net.forward(recent, torch::arange(recent.size(1)).unsqueeze(0)).select(1, -1);
    const Tensor token = torch::multinomial(torch::softmax(logits / 0.7, 1), 1);
    written += text.characters[static_cast<std::size_t>(token.item<int64_t>())];
    tokens = torch::cat({tokens, token}, 1);
  }
  return written;
}

int main(int count, char** arguments) {
  const Text text(count > 1 ? arguments[1] : "/usr/share/common-licenses/GPL-3");
  const int steps = count > 2 ? std::atoi(arguments[2]) : 300;
  const ddprun::Group group = ddprun::init();
  torch::manual_seed(1 + group.rank());  // each rank draws other sequences; the weights are those of rank 0

  Transformer net(static_cast<int64_t>(text.characters.size()));
  const ddprun::DistributedDataParallel ddp(net, group);
  torch::optim::Adam adam(net.parameters());
  const Tensor positions = torch::arange(kContext).unsqueeze(0);
  for (int step = 1; step <= steps; ++step) {
    const double rate = kLearningRate * std::min(1.0, step / static_cast<double>(kWarmUp));
    for (auto& parameters : adam.param_groups()) parameters.options().set_lr(rate);

    const Tensor starts = torch::randint(text.tokens.size(0) - kContext, {kBatch / group.size(), 1});
    const Tensor tokens = text.tokens.index({starts + positions});
    const Tensor targets = text.tokens.index({starts + positions + 1});
    adam.zero_grad();
    Tensor loss = torch::nn::functional::cross_entropy(net.forward(tokens, positions).flatten(0, 1), targets.flatten());
    loss.backward();  // returns with averaged gradients
    adam.step();

    if (step == 1 || step % 50 == 0) {
      loss = loss.detach();
      group.allreduce(loss, ddprun::Op::avg);
      if (group.rank() == 0) std::printf("step %d: loss %.3f\n", step, loss.item<double>());
    }
  }
  if (group.rank() == 0) std::printf("%s\n", write(net, text, 300).c_str());
}
