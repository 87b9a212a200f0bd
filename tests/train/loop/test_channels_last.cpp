#include "support/torch_test.hpp"

#include "comm/joined.hpp"
#include "train/reduce/bucketed_reducer.hpp"
#include "train/reduce/gradient_hooks.hpp"
#include "train/small_models.hpp"
#include "train/tensor/parameters.hpp"
#include "train/tensor/replicas.hpp"

namespace ddprun::train {
namespace {

using testing::As;
using testing::failures;
using testing::run_ranks;

constexpr double kRate = 0.1;

// Two convolutions; the initial weights are always the same.
struct Convolutions : torch::nn::Module {
  Convolutions() {
    torch::manual_seed(7);
    conv1 = register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3)));
    conv2 = register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 4, 3)));
  }
  torch::Tensor loss(const torch::Tensor& input) { return conv2(torch::relu(conv1(input))).square().mean(); }
  void descend() {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : parameters()) parameter.sub_(kRate * parameter.grad());
  }
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
};

torch::Tensor images_of(int rank, int step) {
  return torch::sin(torch::arange(2 * 3 * 6 * 6, torch::kFloat32) * (0.3 + rank) + step).view({2, 3, 6, 6});
}

// The same steps with one model, in the default memory format, with the mean of all ranks' losses.
void follow(Convolutions& model, int size, int step) {
  forget_gradients(model);
  for (int rank = 0; rank < size; ++rank) (model.loss(images_of(rank, step)) / size).backward();
  model.descend();
}

TEST_CASE("parameters in channels_last keep their strides, match one rank, and are bitwise equal on all ranks") {
  for (const std::size_t cap : {std::size_t{1} << 20, std::size_t{1}}) {
    CAPTURE(cap);
    CHECK(failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
            const auto backend = comm::join_good(rank);
            Convolutions model, alone;
            const auto parameters = trainable_parameters(model);
            use_channels_last(model);
            ReducerOptions options;
            options.bucket_bytes = options.first_bucket_bytes = cap;
            BucketedReducer reducer({*backend, kTimeout}, parameters, options);
            const GradientHooks hooks(reducer, parameters);
            for (int step = 0; step < 3; ++step) {
              forget_gradients(model);
              model.loss(with_channels_last(images_of(rank.rank(), step))).backward();
              reducer.finalize();
              model.descend();
              follow(alone, rank.size(), step);
              for (std::size_t i = 0; i < parameters.size(); ++i) {
                const auto& [name, tensor] = parameters[i];
                require(tensor.grad().strides() == tensor.strides(), "strides of " + name);
                require(torch::allclose(tensor, alone.parameters()[i], 1e-5, 1e-6), name);
              }
              compare_tensors({*backend, kTimeout}, parameters, step);
            }
            require(!model.conv2->weight.is_contiguous(), "the order in memory");
          })) == "");
  }
}

}  // namespace
}  // namespace ddprun::train
