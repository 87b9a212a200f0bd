// Precision: the dtypes of a step, and the loss scaling that float16 needs.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "ddprun/amp.hpp"
#include "ddprun/records.hpp"

namespace ddprun::train {

// Automatic mixed precision (Micikevicius et al. 2018): suitable operations run in half precision; weights and
// gradients stay float32.
enum class Amp { off, bf16, fp16 };

// From train.amp of the config, which has been validated.
Amp amp_of(const std::string& name);

// The state that a resumed run needs.
struct ScalerState {
  double scale = 65536;
  int64_t growth_tracker = 0;  // steps without overflow since the scale last changed
};

// The scale of ddprun::GradScaler (ddprun/amp.hpp), with the arithmetic of torch.amp.GradScaler. The state is on the
// gradients' device; only state() waits for the device. Single-threaded.
class LossScale {
 public:
  // growth_tracker: as ScalerState.
  explicit LossScale(torch::Device device, const GradScalerOptions& options = {}, int64_t growth_tracker = 0);

  // The factor for the loss before backward: float32, no dimensions. update() changes it in place.
  const torch::Tensor& scale() const { return scale_; }
  // Divides the gradients by the scale, in place. Returns 1 if one of them is not finite, otherwise 0: float32, no
  // dimensions.
  torch::Tensor unscale(const std::vector<torch::Tensor>& gradients) const;
  // Call it after each step with the result of unscale(), with the same value on all ranks.
  void update(const torch::Tensor& overflow) {
    at::_amp_update_scale_(scale_, tracker_, overflow, growth_factor_, backoff_factor_, growth_interval_);
  }

  ScalerState state() const { return {scale_.item<float>(), tracker_.item<int>()}; }

 private:
  torch::Tensor scale_, tracker_;
  double growth_factor_, backoff_factor_;
  int64_t growth_interval_;
};

class FusedOptimizer;

// Training thread only.
class Precision {
 public:
  // `fused`: the optimizer if the GPU itself decides whether to skip a step; otherwise null. It must outlive this
  // object.
  Precision(Amp amp, torch::Device device, FusedOptimizer* fused);

  // While the result lives, forward and loss are computed in the lower precision.
  Autocast autocast() const {
    return Autocast(device_.type(), amp_ == Amp::fp16 ? torch::kFloat16 : torch::kBFloat16, amp_ != Amp::off);
  }
  // The loss that backward starts from: times `weight`, and under fp16 also times the scale.
  torch::Tensor scaled(const torch::Tensor& loss, double weight) const;

  // Whether the loss is scaled, so that gradients must be unscaled: under fp16.
  bool scales() const { return scaler_.has_value(); }
  // Only if scales(). Before the optimizer's step: divides the complete gradients by the scale and updates the scale.
  // Returns false if a gradient of any rank has overflowed, so that the optimizer must not step. Collective, except for
  // a fused optimizer, which skips the step on the device: it sets `scale` and `overflow`, scalars, instead of the
  // record.
  bool unscale(const std::vector<torch::Tensor>& gradients, const comm::Group& ranks, record::StepRecord& record,
               torch::Tensor& scale, torch::Tensor& overflow);

  // Saves scale and growth tracker for a checkpoint. Waits for the GPU.
  void save(std::map<std::string, double>& numbers) const;
  void restore(const std::map<std::string, double>& numbers);

 private:
  const Amp amp_;
  const torch::Device device_;
  FusedOptimizer* const fused_;
  std::optional<LossScale> scaler_;  // under fp16
};

}  // namespace ddprun::train
