// Loss scaling for float16, whose smallest number is 6e-8: a loss that is multiplied keeps small gradients above it.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace ddprun::train {

// All that a run that goes on needs to know.
struct ScalerState {
  double scale = 65536;
  int64_t growth_tracker = 0;  // steps without overflow since the scale last changed
};

// As torch.amp.GradScaler: the scale halves after a step whose gradients overflowed, and doubles after 2000 steps in a
// row that did not. What it knows lies on the gradients' device, and only state() waits for that. One thread.
class GradScaler {
 public:
  explicit GradScaler(torch::Device device, ScalerState state = {});

  // What the loss is to be multiplied with before backward: float32, no dimensions. update() changes it in place.
  const torch::Tensor& scale() const { return scale_; }
  // Divides the gradients by the scale, in place. Gives 1 where one of them is not finite, else 0: float32, no
  // dimensions.
  torch::Tensor unscale(const std::vector<torch::Tensor>& gradients) const;
  // After each step, with what unscale() gave, on all ranks alike.
  void update(const torch::Tensor& overflow);

  ScalerState state() const { return {scale_.item<float>(), tracker_.item<int>()}; }

 private:
  torch::Tensor scale_, tracker_;
};

}  // namespace ddprun::train
