// Limits the norm of a step's gradients.
#pragma once

#include <torch/torch.h>

#include <vector>

namespace ddprun::train {

// Multiplies all gradients, in place, by min(1, limit / (norm + 1e-6)); norm is the global 2-norm. The operations and
// their order are those of torch.nn.utils.clip_grad_norm_ in Python. LibTorch's own function returns the norm and so
// waits for the GPU; this one does not wait. All gradients are on one device. If a gradient is not finite, the results
// are not either.
void clip_norm(const std::vector<torch::Tensor>& gradients, double limit);

}  // namespace ddprun::train
