#include "train/optim/precision.hpp"

#include <ATen/autocast_mode.h>

#include "comm/group.hpp"
#include "ddprun/error.hpp"
#include "train/optim/fused.hpp"

namespace ddprun {

Autocast::Autocast(torch::DeviceType device, std::optional<torch::Dtype> dtype, bool enabled)
    : device_(device),
      was_enabled_(at::autocast::is_autocast_enabled(device)),
      was_dtype_(at::autocast::get_autocast_dtype(device)) {
  const torch::Dtype wanted = dtype.value_or(device == torch::kCPU ? torch::kBFloat16 : torch::kFloat16);
  if (wanted != torch::kBFloat16 && wanted != torch::kFloat16) {
    throw Error(ExitCode::usage,
                std::string("Autocast to ") + c10::toString(wanted) + ": expected bfloat16 or float16");
  }
  at::autocast::set_autocast_dtype(device_, wanted);
  at::autocast::set_autocast_enabled(device_, enabled);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  // Clears the cached casts of the weights, which the optimizer is about to change.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, was_dtype_);
}

namespace train {

Amp amp_of(const std::string& name) {
  if (name == "bf16") return Amp::bf16;
  return name == "fp16" ? Amp::fp16 : Amp::off;
}

LossScale::LossScale(torch::Device device, const GradScalerOptions& options, int64_t growth_tracker)
    : scale_(torch::full({}, options.init_scale, torch::TensorOptions(device).dtype(torch::kFloat32))),
      tracker_(torch::full({}, growth_tracker, torch::TensorOptions(device).dtype(torch::kInt32))),
      growth_factor_(options.growth_factor),
      backoff_factor_(options.backoff_factor),
      growth_interval_(options.growth_interval) {}

torch::Tensor LossScale::unscale(const std::vector<torch::Tensor>& gradients) const {
  const torch::NoGradGuard no_grad;
  torch::Tensor overflow = torch::zeros_like(scale_);
  at::_amp_foreach_non_finite_check_and_unscale_(gradients, overflow, scale_.reciprocal());
  return overflow;
}

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

bool Precision::unscale(const std::vector<torch::Tensor>& gradients, const comm::Group& ranks,
                        record::StepRecord& record, torch::Tensor& scale, torch::Tensor& overflow) {
  if (fused_ != nullptr) {
    // The reduced gradients are bitwise equal on all ranks, so each GPU finds the same overflow.
    scale = scaler_->scale().clone();
    overflow = scaler_->unscale(gradients);
    fused_->skip_where(overflow);
    scaler_->update(overflow);
    return true;
  }
  record.scale = scaler_->scale().item<float>();
  torch::Tensor found = scaler_->unscale(gradients);
  // All ranks must agree: the replicas would differ if only some of them stepped.
  const bool any = ranks.sum({found.item<float>()})[0] > 0;
  scaler_->update(found.fill_(any ? 1 : 0));
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
  scaler_.emplace(device_, GradScalerOptions{.init_scale = scale->second}, static_cast<int64_t>(tracker->second));
}

}  // namespace train
}  // namespace ddprun
