#include "ddprun/amp.hpp"

#include <cmath>
#include <limits>

#include "ddprun/error.hpp"
#include "train/optim/optimizers.hpp"
#include "train/optim/precision.hpp"

namespace ddprun {
namespace {

using torch::optim::Optimizer;

const GradScalerOptions& in_range(const GradScalerOptions& options) {
  const auto scale = static_cast<float>(options.init_scale);  // its type in LossScale
  if (scale > 0 && std::isfinite(scale) && options.growth_factor > 1 && std::isfinite(options.growth_factor) &&
      options.backoff_factor > 0 && options.backoff_factor < 1 && options.growth_interval >= 1) {
    return options;
  }
  throw Error(ExitCode::usage,
              "GradScalerOptions: expected init_scale above 0 and finite in float32, growth_factor above 1 and finite, "
              "backoff_factor between 0 and 1, and growth_interval of at least 1");
}

constexpr const char *kScale = "scale", *kGrowth = "growth_factor", *kBackoff = "backoff_factor",
                     *kInterval = "growth_interval", *kTracker = "_growth_tracker";

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ExitCode::failure, "GradScaler: " + what);
}

}  // namespace

struct GradScaler::Impl {
  // An optimizer whose gradients are unscaled.
  struct Checked {
    torch::Tensor overflow;
    bool stepped = false;
  };

  torch::Device device;
  GradScalerOptions options;
  train::LossScale scale;
  std::map<const Optimizer*, Checked> optimizers;  // since the last update()
};

GradScaler::GradScaler(torch::Device device, const GradScalerOptions& options)
    : impl_(std::make_unique<Impl>(Impl{device, in_range(options), train::LossScale(device, options), {}})) {}
GradScaler::~GradScaler() = default;
GradScaler::GradScaler(GradScaler&&) noexcept = default;
GradScaler& GradScaler::operator=(GradScaler&&) noexcept = default;

torch::Tensor GradScaler::scale(const torch::Tensor& loss) const {
  return impl_->options.enabled ? loss * impl_->scale.scale().to(loss.device()) : loss;
}

void GradScaler::unscale_(Optimizer& optimizer) {
  if (!impl_->options.enabled) return;
  if (const auto found = impl_->optimizers.find(&optimizer); found != impl_->optimizers.end()) {
    refuse(found->second.stepped ? "unscale_() is called after step(); call it before"
                                 : "unscale_() is called twice for this optimizer; call update() after each step");
  }
  const auto gradients = train::gradients_of(optimizer);
  if (gradients.empty()) refuse("no parameter of the optimizer has a gradient: call scale(loss).backward() first");
  for (const torch::Tensor& gradient : gradients) {
    if (gradient.scalar_type() != torch::kFloat16) continue;
    refuse("a gradient is float16, which is too narrow to unscale it: keep the parameters in float32");
  }
  torch::Tensor overflow = impl_->scale.unscale(gradients);
  if (impl_->options.group) impl_->options.group->allreduce(overflow, Op::max);
  impl_->optimizers.emplace(&optimizer, Impl::Checked{overflow});
}

bool GradScaler::step(Optimizer& optimizer) {
  if (!impl_->options.enabled) {
    optimizer.step();
    return true;
  }
  if (!impl_->optimizers.contains(&optimizer)) unscale_(optimizer);
  Impl::Checked& checked = impl_->optimizers.at(&optimizer);
  if (checked.stepped) refuse("step() is called twice for this optimizer; call update() after each step");
  checked.stepped = true;
  if (checked.overflow.item<float>() > 0) return false;
  optimizer.step();
  return true;
}

void GradScaler::update() {
  if (!impl_->options.enabled) return;
  if (impl_->optimizers.empty()) refuse("update() is called without a step(optimizer) before it");
  torch::Tensor overflow;
  for (const auto& [optimizer, checked] : impl_->optimizers) {
    overflow = overflow.defined() ? overflow + checked.overflow : checked.overflow;
  }
  impl_->scale.update(overflow);
  impl_->optimizers.clear();
}

double GradScaler::get_scale() const {
  return impl_->options.enabled ? impl_->scale.state().scale : 1;
}

std::map<std::string, double> GradScaler::state_dict() const {
  if (!impl_->options.enabled) return {};
  const train::ScalerState state = impl_->scale.state();
  return {{kScale, state.scale},
          {kGrowth, impl_->options.growth_factor},
          {kBackoff, impl_->options.backoff_factor},
          {kInterval, static_cast<double>(impl_->options.growth_interval)},
          {kTracker, static_cast<double>(state.growth_tracker)}};
}

void GradScaler::load_state_dict(const std::map<std::string, double>& state) {
  if (!impl_->options.enabled) return;
  const auto number = [&](const char* name) {
    const auto found = state.find(name);
    if (found != state.end()) return found->second;
    throw Error(ExitCode::usage, std::string("GradScaler: the state has no \"") + name +
                                     "\": load what state_dict() of an enabled scaler returned");
  };
  GradScalerOptions options = impl_->options;
  options.init_scale = number(kScale);
  options.growth_factor = number(kGrowth);
  options.backoff_factor = number(kBackoff);
  options.growth_interval = std::llround(number(kInterval));
  const auto tracker = std::llround(number(kTracker));
  if (tracker < 0 || tracker > std::numeric_limits<int32_t>::max()) {
    throw Error(ExitCode::usage, std::string("GradScaler: the state has ") + kTracker + " = " +
                                     std::to_string(number(kTracker)) + ": expected a number of steps");
  }
  impl_->options = in_range(options);
  impl_->scale = train::LossScale(impl_->device, options, tracker);
  impl_->optimizers.clear();
}

}  // namespace ddprun
