// ddprun/amp.hpp: automatic mixed precision (Micikevicius et al. 2018, "Mixed Precision Training"), as torch.autocast
// and torch.amp.GradScaler in Python.
// docs/library.md has an example.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "ddprun/group.hpp"

namespace ddprun {

// While it lives, suitable operations of this thread on devices of this type run in `dtype`, by the rules of
// torch.autocast; weights and gradients keep their dtype. Use it for forward and loss only: autograd casts backward by
// itself. Objects may be nested; destroy them in reverse order, on the same thread.
class Autocast {
 public:
  // `dtype`: bfloat16 or float16; by default bfloat16 on the CPU and float16 on CUDA. With `enabled` = false,
  // operations are not cast, even inside of another Autocast. Throws Error(usage) for another dtype.
  explicit Autocast(torch::DeviceType device, std::optional<torch::Dtype> dtype = std::nullopt, bool enabled = true);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const torch::DeviceType device_;
  const bool was_enabled_;
  const torch::Dtype was_dtype_;
};

struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;     // after growth_interval steps in a row without overflow
  double backoff_factor = 0.5;  // after an overflow
  int64_t growth_interval = 2000;
  bool enabled = true;  // false: scale() returns the loss itself, and step() always steps
  // Ranks that skip a step together: they exchange whether a gradient has overflowed, with one allreduce per step.
  // unscale_() is collective then, and so is step() without unscale_() before it. Needed only if the ranks have
  // different gradients. After a backward() of DistributedDataParallel, all have the same.
  std::optional<Group> group = std::nullopt;
};

// Loss scaling for float16, whose smallest positive number is 6e-8: it keeps small gradients above this number.
//
// Ranks: backward() of DistributedDataParallel returns with gradients that are equal on all ranks, so all find the same
// overflow and skip the same steps, without communication. This holds with communication hooks, and with an optimizer
// that shares its state among the ranks but gets all gradients (ZeRO stage 1). With no_sync(), it holds after the
// backward() that averages; unscale_() and step() must not come before. It does not hold for gradients that each rank
// has for itself: then set GradScalerOptions::group.
//
// The scale is on the device, and only step(), get_scale() and state_dict() wait for it. Not thread-safe.
class GradScaler {
 public:
  // `device`: of the losses and the gradients. (PyTorch's default is "cuda".) Throws Error(usage) for options out of
  // range.
  explicit GradScaler(torch::Device device = torch::kCPU, const GradScalerOptions& options = {});
  ~GradScaler();
  GradScaler(GradScaler&&) noexcept;
  GradScaler& operator=(GradScaler&&) noexcept;

  // The loss times the scale: call backward() on it.
  torch::Tensor scale(const torch::Tensor& loss) const;
  // Divides the gradients of the optimizer's parameters by the scale, in place, for a program that clips or inspects
  // them before step(). Throws Error(failure) if step() or unscale_() has been called since update(), if no parameter
  // has a gradient, or if a gradient is float16.
  void unscale_(torch::optim::Optimizer& optimizer);
  // Calls unscale_() if the program has not, and then the optimizer's step() if all gradients are finite. Returns
  // whether the optimizer stepped. Throws as unscale_(), and Error(failure) if it is called twice without update().
  bool step(torch::optim::Optimizer& optimizer);
  // Call it once after the steps of all optimizers: it sets the scale of the next iteration. Throws Error(failure) if
  // neither step() nor unscale_() was called since the last update().
  void update();

  double get_scale() const;
  // PyTorch's names: "scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker". For the numbers
  // of a checkpoint. Empty if the scaler is not enabled. Loading ignores other names, and throws Error(usage) if one is
  // missing.
  std::map<std::string, double> state_dict() const;
  void load_state_dict(const std::map<std::string, double>& state);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ddprun
