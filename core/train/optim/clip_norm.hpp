// Limits the norm of a step's gradients.
#pragma once

#include <torch/torch.h>

#include <vector>

namespace ddprun::train {

// Multiplies all gradients, in place, with min(1, limit / (norm + 1e-6)); norm is the 2-norm of all of them together.
// The operations, and their order, are those of torch.nn.utils.clip_grad_norm_ in Python. LibTorch's own function gives
// the norm back, for which it would wait for a GPU; nobody waits here. One device; not finite where a gradient is not.
void clip_norm(const std::vector<torch::Tensor>& gradients, double limit);

}  // namespace ddprun::train
