#include "train/optim/precision.hpp"

#include "train/loop/rank_group.hpp"
#include "train/optim/fused.hpp"

namespace ddprun::train {
namespace {

// Keys of Position::numbers.
const std::string kScale = "fp16.scale", kGrowthTracker = "fp16.growth_tracker";

}  // namespace

Precision::Precision(Amp amp, torch::Device device, FusedOptimizer* fused) : amp_(amp), device_(device), fused_(fused) {
  if (amp == Amp::fp16) scaler_.emplace(device);
}

torch::Tensor Precision::scaled(const torch::Tensor& loss, double weight) const {
  const torch::Tensor large = scaler_ ? loss * scaler_->scale() : loss;
  return weight == 1 ? large : large * weight;
}

bool Precision::unscale(const std::vector<torch::Tensor>& gradients, const RankGroup& ranks, record::StepRecord& record,
                        StepResults& results) {
  if (fused_ != nullptr) {
    // The reduced gradients are bitwise equal on all ranks, so each GPU finds the same overflow.
    results.scale = scaler_->scale().clone();
    results.overflow = scaler_->unscale(gradients);
    fused_->skip_where(results.overflow);
    scaler_->update(results.overflow);
    return true;
  }
  record.scale = scaler_->scale().item<float>();
  torch::Tensor overflow = scaler_->unscale(gradients);
  // All ranks must agree: the replicas would differ if only some of them stepped.
  const bool any = ranks.sum({overflow.item<float>()})[0] > 0;
  scaler_->update(overflow.fill_(any ? 1 : 0));
  record.skipped = any ? 1 : 0;
  return !any;
}

void Precision::save(std::map<std::string, double>& numbers) const {
  if (!scaler_) return;
  const ScalerState state = scaler_->state();
  numbers[kScale] = state.scale;
  numbers[kGrowthTracker] = static_cast<double>(state.growth_tracker);
}

void Precision::restore(const std::map<std::string, double>& numbers) {
  const auto scale = numbers.find(kScale), tracker = numbers.find(kGrowthTracker);
  if (!scaler_ || scale == numbers.end() || tracker == numbers.end()) return;
  scaler_.emplace(device_, ScalerState{scale->second, static_cast<int64_t>(tracker->second)});
}

}  // namespace ddprun::train
