// An operator of a capture, as each replay runs it: on the same memory, results included.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <vector>

namespace ddprun::fake_gpu {

class Again {
 public:
  // The arguments are tensors of the CPU over the device's memory, which stay as they are.
  Again(const c10::OperatorHandle& op, torch::jit::Stack arguments) : op_(op), arguments_(std::move(arguments)) {}

  // What the operator returned in the capture, one tensor after the other: each replay puts its own there. An undefined
  // one where the result is no memory of its own.
  void add_result(const at::Tensor& tensor) { results_.push_back(tensor); }

  void operator()() const;

 private:
  c10::OperatorHandle op_;
  torch::jit::Stack arguments_;
  std::vector<at::Tensor> results_;
};

}  // namespace ddprun::fake_gpu
