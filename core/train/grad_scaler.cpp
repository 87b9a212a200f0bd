#include "train/grad_scaler.hpp"

namespace ddprun::train {

bool GradScaler::unscale(const std::vector<torch::Tensor>& gradients) const {
  const torch::NoGradGuard no_grad;
  torch::Tensor overflow = torch::zeros({1});
  at::_amp_foreach_non_finite_check_and_unscale_(gradients, overflow, torch::full({1}, 1 / state_.scale));
  return overflow.item<float>() == 0;
}

void GradScaler::update(bool overflow) {
  constexpr double growth = 2, backoff = 0.5;
  constexpr int64_t growth_interval = 2000;
  torch::Tensor scale = torch::full({1}, state_.scale);
  torch::Tensor tracker = torch::full({1}, state_.growth_tracker, torch::kInt32);
  at::_amp_update_scale_(scale, tracker, torch::full({1}, overflow ? 1.0 : 0.0), growth, backoff, growth_interval);
  state_ = {scale.item<float>(), tracker.item<int>()};
}

}  // namespace ddprun::train
