// GradientHooks: calls a reducer whenever autograd has completed a gradient.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "ddprun/reducer.hpp"
#include "train/loop/parameters.hpp"

namespace ddprun::train {

// Used by the thread that runs backward. The destructor removes the hooks. The reducer must outlive it.
class GradientHooks {
 public:
  // `parameters` are in the order of the reducer's indices.
  GradientHooks(Reducer& reducer, const std::vector<NamedTensor>& parameters);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

  // While on, completed gradients are not reduced, and the next backward of the step adds to them, as with no_sync() of
  // DistributedDataParallel. Off by default.
  void hold(bool on) { holding_ = on; }
  // After the last backward of a step: adds the held gradients that the last backward did not complete again.
  void add_held();

 private:
  void finished(std::size_t index);

  Reducer& reducer_;
  bool holding_ = false;
  std::vector<bool> held_;  // by parameter
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;
  std::vector<uintptr_t> keys_;
};

}  // namespace ddprun::train
