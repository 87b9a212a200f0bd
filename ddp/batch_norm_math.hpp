// The computations of a synchronized BatchNorm on one rank. Tensors have the channels in dimension 1. `mean`, `var`:
// [channels], statistics_type(input), var biased.
#pragma once

#include <torch/torch.h>

#include <optional>

namespace ddprun::ddp {

// Of the values of each channel; float64, so that the ranks lose nothing when they combine theirs. `count` may be 0.
struct BatchStatistics {
  torch::Tensor count;    // [], values per channel
  torch::Tensor mean;     // [channels]
  torch::Tensor squares;  // [channels], sum of (value - mean)^2
};

// float64 for float64, otherwise float32.
torch::ScalarType statistics_type(const torch::Tensor& input);

BatchStatistics statistics_of(const torch::Tensor& input);

// Moves the running statistics, if they are defined, towards `whole` by `momentum`. The variance is the unbiased one.
// A batch without values changes nothing.
void update_running(const std::optional<torch::Tensor>& running_mean, const std::optional<torch::Tensor>& running_var,
                    const BatchStatistics& whole, double momentum);

// (input - mean) / sqrt(var + eps) * weight + bias, of input's dtype.
torch::Tensor normalize(const torch::Tensor& input, const std::optional<torch::Tensor>& weight,
                        const std::optional<torch::Tensor>& bias, const torch::Tensor& mean, const torch::Tensor& var,
                        double eps);

// `gradient` and `input` are contiguous in the same memory format and of the same dtype.
struct BackwardInput {
  torch::Tensor gradient;  // of the output
  torch::Tensor input, mean, var;
  double eps;
};

// [channels] each: the sum of the gradients, which is the gradient of bias, and the sum of
// gradient * (input - mean) / sqrt(var + eps), which is that of weight.
struct BackwardSums {
  torch::Tensor gradient, product;
};
BackwardSums sums_of(const BackwardInput& step);

// The gradient of the input. `sums`: BackwardSums of all ranks in one float64 tensor [2 * channels]; `count`: values
// per channel on all ranks. `weight` may be undefined.
torch::Tensor input_gradient(const BackwardInput& step, const torch::Tensor& weight, const torch::Tensor& sums,
                             const torch::Tensor& count);

}  // namespace ddprun::ddp
