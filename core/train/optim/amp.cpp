#include "train/optim/amp.hpp"

#include <ATen/autocast_mode.h>

namespace ddprun::train {

Amp amp_of(const std::string& name) {
  if (name == "bf16") return Amp::bf16;
  return name == "fp16" ? Amp::fp16 : Amp::off;
}

Autocast::Autocast(Amp amp, torch::DeviceType device) : on_(amp != Amp::off), device_(device) {
  if (!on_) return;
  was_enabled_ = at::autocast::is_autocast_enabled(device_);
  was_type_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::set_autocast_dtype(device_, amp == Amp::bf16 ? at::kBFloat16 : at::kHalf);
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!on_) return;
  // Clears the cached casts of the weights, which the optimizer is about to change.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, was_type_);
}

}  // namespace ddprun::train
