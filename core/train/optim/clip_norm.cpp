#include "train/optim/clip_norm.hpp"

namespace ddprun::train {

void clip_norm(const std::vector<torch::Tensor>& gradients, double limit) {
  if (gradients.empty()) return;
  const torch::NoGradGuard no_grad;
  const torch::Tensor norm = at::linalg_vector_norm(torch::stack(at::_foreach_norm(gradients, 2.0)));
  at::_foreach_mul_(gradients, ((norm + 1e-6).reciprocal() * limit).clamp_max(1.0));
}

}  // namespace ddprun::train
