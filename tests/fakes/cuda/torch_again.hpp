// An operator of a capture, which each replay runs on the same memory, also for results.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <vector>

namespace ddprun::fake_gpu {

class Again {
 public:
  // The arguments are CPU tensors over device memory, and do not change.
  Again(const c10::OperatorHandle& op, torch::jit::Stack arguments) : op_(op), arguments_(std::move(arguments)) {}

  // The operator's results in the capture: each replay writes its results there. Undefined if a result has no memory
  // of its own.
  void add_result(const at::Tensor& tensor) { results_.push_back(tensor); }

  void operator()() const;

 private:
  c10::OperatorHandle op_;
  torch::jit::Stack arguments_;
  std::vector<at::Tensor> results_;
};

}  // namespace ddprun::fake_gpu
