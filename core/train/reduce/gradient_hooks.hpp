// GradientHooks: reports to a reducer whenever autograd has finished a gradient.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "ddprun/reducer.hpp"
#include "train/loop/parameters.hpp"

namespace ddprun::train {

// The thread that runs backward. The hooks end with the object. The reducer must outlive it.
class GradientHooks {
 public:
  // `parameters` in the order in which the reducer numbers them.
  GradientHooks(Reducer& reducer, const std::vector<NamedTensor>& parameters);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

  // While held, finished gradients stay where they are, and the next backward of the step adds to them: no_sync() of
  // DistributedDataParallel. Not held at first.
  void hold(bool on) { holding_ = on; }
  // After the last backward of a step: adds what was held and was not finished again since.
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
