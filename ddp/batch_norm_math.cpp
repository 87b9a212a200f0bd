#include "ddp/batch_norm_math.hpp"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>
#include <tuple>

namespace ddprun::ddp {
namespace {

using torch::Tensor;

constexpr int64_t kValuesPerTask = 16'384;  // less is not worth a thread

Tensor in_type_of(const Tensor& like, const std::optional<Tensor>& tensor) {
  return tensor && tensor->defined() ? tensor->to(like.scalar_type()) : Tensor();
}

// result = scale * (gradient - mean_gradient) + slope * (input - mean), the last four per channel: one pass over the
// data, where tensor operations would need three.
template <class Value, class Exact>
void combine(const BackwardInput& step, const Tensor& scale, const Tensor& mean_gradient, const Tensor& slope,
             const Tensor& result) {
  const auto* __restrict gradient = step.gradient.const_data_ptr<Value>();
  const auto* __restrict input = step.input.const_data_ptr<Value>();
  auto* __restrict out = result.mutable_data_ptr<Value>();
  const auto* a = scale.const_data_ptr<Exact>();
  const auto* shift = mean_gradient.const_data_ptr<Exact>();
  const auto* b = slope.const_data_ptr<Exact>();
  const auto* mean = step.mean.const_data_ptr<Exact>();
  const auto value = [](Value dy, Value x, Exact scale, Exact shift, Exact slope, Exact mean) {
    return static_cast<Value>(scale * (static_cast<Exact>(dy) - shift) + slope * (static_cast<Exact>(x) - mean));
  };
  const int64_t channels = step.mean.numel();
  // Contiguous: the values of a channel in a sample are a row. Channels last: one value of each channel is a row.
  const bool planes = step.input.is_contiguous() && step.input.numel() > step.input.size(0) * channels;
  const int64_t width = planes ? step.input.numel() / (step.input.size(0) * channels) : channels;
  const auto rows = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = row * width, c = row % channels;
      if (planes) {
        const Exact of_row[] = {a[c], shift[c], b[c], mean[c]};
        for (int64_t i = at; i < at + width; ++i) {
          out[i] = value(gradient[i], input[i], of_row[0], of_row[1], of_row[2], of_row[3]);
        }
      } else {
        for (int64_t i = 0; i < width; ++i)
          out[at + i] = value(gradient[at + i], input[at + i], a[i], shift[i], b[i], mean[i]);
      }
    }
  };
  at::parallel_for(0, step.input.numel() / width, std::max<int64_t>(1, kValuesPerTask / width), rows);
}

}  // namespace

torch::ScalarType statistics_type(const Tensor& input) {
  return input.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
}

BatchStatistics statistics_of(const Tensor& input) {
  const int64_t channels = input.size(1);
  const auto exact = input.options().dtype(torch::kFloat64);
  if (input.numel() == 0)
    return {torch::zeros({}, exact), torch::zeros(channels, exact), torch::zeros(channels, exact)};
  // It has two uses: running statistics that it may change, and their dtype, which is that of its results.
  const Tensor running = torch::zeros(channels, input.options().dtype(statistics_type(input)));
  const auto [mean, var] = at::batch_norm_update_stats(input, running, running.clone(), 0);
  const auto count = static_cast<double>(input.numel() / channels);
  return {torch::full({}, count, exact), mean.to(torch::kFloat64), var.to(torch::kFloat64) * count};
}

void update_running(const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var,
                    const BatchStatistics& whole, double momentum) {
  const Tensor weight = whole.count.clamp_max(1) * momentum;  // no `if`: it would wait for the GPU
  const auto move = [&](const std::optional<Tensor>& running, const Tensor& value) {
    if (!running || !running->defined()) return;
    running->lerp_(value.to(running->scalar_type()), weight.to(running->scalar_type()));
  };
  move(running_mean, whole.mean);
  move(running_var, whole.squares / (whole.count - 1).clamp_min(1));
}

Tensor normalize(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                 const Tensor& mean, const Tensor& var, double eps) {
  if (input.numel() == 0) return torch::empty_like(input);
  return std::get<0>(at::native_batch_norm(input, in_type_of(mean, weight), in_type_of(mean, bias), mean, var,
                                           /*training=*/false, 0, eps));
}

BackwardSums sums_of(const BackwardInput& step) {
  if (step.input.numel() == 0) return {torch::zeros_like(step.mean), torch::zeros_like(step.mean)};
  if (!step.input.is_cpu()) {  // a kernel made for this, which the CPU does not have
    const Tensor inverse = (step.var + step.eps).rsqrt();
    const auto [gradient, product, of_weight, of_bias] = at::batch_norm_backward_reduce(
        step.gradient, step.input, step.mean, inverse, {}, /*input_g=*/true, /*weight_g=*/false, /*bias_g=*/false);
    return {gradient, product * inverse};
  }
  const auto [unused, product, gradient] = at::native_batch_norm_backward(
      step.gradient, step.input, {}, step.mean, step.var, {}, {}, /*train=*/false, step.eps, {false, true, true});
  return {gradient, product};
}

// Ioffe and Szegedy 2015, "Batch Normalization", section 3.
Tensor input_gradient(const BackwardInput& step, const Tensor& weight, const Tensor& sums, const Tensor& count) {
  if (step.input.numel() == 0) return torch::empty_like(step.input);
  const auto type = step.mean.scalar_type();
  const Tensor inverse = (step.var + step.eps).rsqrt();
  const int64_t channels = step.mean.numel();
  const Tensor gradient = sums.narrow(0, 0, channels), product = sums.narrow(0, channels, channels);
  if (!step.input.is_cpu()) {
    return at::batch_norm_backward_elemt(step.gradient, step.input, step.mean, inverse, in_type_of(step.mean, weight),
                                         gradient.to(type), (product / inverse).to(type),
                                         count.view(1).to(torch::kInt32));
  }
  const Tensor scale = weight.defined() ? inverse * weight.to(type) : inverse;
  const Tensor slope = -scale * inverse * (product / count).to(type);
  Tensor result = torch::empty_like(step.input);
  AT_DISPATCH_FLOATING_TYPES_AND2(torch::kHalf, torch::kBFloat16, step.input.scalar_type(), "SyncBatchNorm", [&] {
    combine<scalar_t, at::opmath_type<scalar_t>>(step, scale, (gradient / count).to(type), slope, result);
  });
  return result;
}

}  // namespace ddprun::ddp
