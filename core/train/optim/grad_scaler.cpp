#include "train/optim/grad_scaler.hpp"

namespace ddprun::train {

GradScaler::GradScaler(torch::Device device, ScalerState state)
    : scale_(torch::full({}, state.scale, torch::TensorOptions(device).dtype(torch::kFloat32))),
      tracker_(torch::full({}, state.growth_tracker, torch::TensorOptions(device).dtype(torch::kInt32))) {}

torch::Tensor GradScaler::unscale(const std::vector<torch::Tensor>& gradients) const {
  const torch::NoGradGuard no_grad;
  torch::Tensor overflow = torch::zeros_like(scale_);
  at::_amp_foreach_non_finite_check_and_unscale_(gradients, overflow, scale_.reciprocal());
  return overflow;
}

void GradScaler::update(const torch::Tensor& overflow) {
  constexpr double growth = 2, backoff = 0.5;
  constexpr int64_t growth_interval = 2000;
  at::_amp_update_scale_(scale_, tracker_, overflow, growth, backoff, growth_interval);
}

}  // namespace ddprun::train
