// Loss scaling for float16, whose smallest positive number is 6e-8: scaling the loss keeps small gradients above it.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace ddprun::train {

// The state that a resumed run needs.
struct ScalerState {
  double scale = 65536;
  int64_t growth_tracker = 0;  // steps without overflow since the scale last changed
};

// As torch.amp.GradScaler: the scale halves after a step whose gradients overflowed, and doubles after 2000 steps in a
// row without overflow. The state is on the gradients' device; only state() waits for the device. Single-threaded.
class GradScaler {
 public:
  explicit GradScaler(torch::Device device, ScalerState state = {});

  // The factor for the loss before backward: float32, no dimensions. update() changes it in place.
  const torch::Tensor& scale() const { return scale_; }
  // Divides the gradients by the scale, in place. Returns 1 if one of them is not finite, otherwise 0: float32, no
  // dimensions.
  torch::Tensor unscale(const std::vector<torch::Tensor>& gradients) const;
  // Call it after each step with the result of unscale(), with the same value on all ranks.
  void update(const torch::Tensor& overflow);

  ScalerState state() const { return {scale_.item<float>(), tracker_.item<int>()}; }

 private:
  torch::Tensor scale_, tracker_;
};

}  // namespace ddprun::train
