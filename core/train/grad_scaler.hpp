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
// row that did not. One thread.
class GradScaler {
 public:
  explicit GradScaler(ScalerState state = {}) : state_(state) {}

  // What the loss is to be multiplied with before backward.
  double scale() const { return state_.scale; }
  // Divides the gradients by the scale, in place. Returns whether all are finite.
  bool unscale(const std::vector<torch::Tensor>& gradients) const;
  // After each step, on all ranks alike.
  void update(bool overflow);

  const ScalerState& state() const { return state_; }

 private:
  ScalerState state_;
};

}  // namespace ddprun::train
