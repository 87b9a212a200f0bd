// GradientHooks: calls a reducer whenever autograd has completed a gradient.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <utility>
#include <vector>

#include "ddprun/reducer.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::train {

// The parameters own the hooks, so torch::load() and Module::to(), which replace gradient accumulators, keep them. Used
// by the thread that runs backward. The destructor removes the hooks. The reducer and `parameters` must outlive it.
class GradientHooks {
 public:
  // `parameters` are in the order of the reducer's indices. static_graph: a parameter may get several gradients in one
  // step, as with activation checkpointing, but as many in each step. The first step counts them. Throws Error(usage)
  // if a parameter has hooks of another object, because its gradient would be averaged twice.
  GradientHooks(Reducer& reducer, const std::vector<NamedTensor>& parameters, bool static_graph = false);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

  // Called with the first gradient of a step that is not held.
  void set_on_first(std::function<void()> on_first) { on_first_ = std::move(on_first); }
  // While on, completed gradients are not reduced, and the next backward of the step adds to them, as with no_sync() of
  // DistributedDataParallel. Off by default. Returns the value before.
  bool hold(bool on) { return std::exchange(holding_, on); }
  // After the last backward of a step: adds the gradients that were held back and, with static_graph, those that came
  // fewer times than in the first step.
  void add_held();
  // After a backward that threw: the next gradient is the first of a step.
  void reset() noexcept;

  static bool has(const torch::Tensor& parameter);  // whether it has hooks of any object; any thread

 private:
  void finished(std::size_t index);

  Reducer& reducer_;
  const std::vector<NamedTensor>& parameters_;
  std::function<void()> on_first_;
  bool holding_ = false;
  bool begun_ = false;     // this step has a gradient
  bool counting_;          // static_graph, in the first step
  int gradients_ = 0;      // of this step, all parameters
  std::vector<int> held_;  // by parameter: the number of its last gradient in this step if that is not added, else 0
  // By parameter: gradients to come before it is added, in each step and still in this one.
  std::vector<int> expected_, missing_;
};

}  // namespace ddprun::train
