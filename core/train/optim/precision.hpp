// Precision: the dtypes of a step, and the loss scaling that float16 needs.
#pragma once

#include <torch/torch.h>

#include <map>
#include <optional>
#include <string>

#include "train/loop/step_results.hpp"
#include "train/optim/amp.hpp"
#include "train/optim/grad_scaler.hpp"

namespace ddprun::train {

class FusedOptimizer;
class RankGroup;

// Training thread only.
class Precision {
 public:
  // `fused`: the optimizer if the GPU itself decides whether to skip a step; otherwise null. It must outlive this
  // object.
  Precision(Amp amp, torch::Device device, FusedOptimizer* fused);

  // While the result lives, forward and loss are computed in the lower precision.
  Autocast autocast() const { return Autocast(amp_, device_.type()); }
  // The loss that backward starts from: times `weight`, and under fp16 also times the scale.
  torch::Tensor scaled(const torch::Tensor& loss, double weight) const;

  // Whether the loss is scaled, so that gradients must be unscaled: under fp16.
  bool scales() const { return scaler_.has_value(); }
  // Only if scales(). Before the optimizer's step: divides the complete gradients by the scale and updates the scale.
  // Returns false if a gradient of any rank has overflowed, so that the optimizer must not step. Collective, except for
  // a fused optimizer, which skips the step on the device.
  bool unscale(const std::vector<torch::Tensor>& gradients, const RankGroup& ranks, record::StepRecord& record,
               StepResults& results);

  // Saves scale and growth tracker for a checkpoint. Waits for the GPU.
  void save(std::map<std::string, double>& numbers) const;
  void restore(const std::map<std::string, double>& numbers);

 private:
  const Amp amp_;
  const torch::Device device_;
  FusedOptimizer* const fused_;
  std::optional<GradScaler> scaler_;  // under fp16
};

}  // namespace ddprun::train
