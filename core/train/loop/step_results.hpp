// What a step computes besides weights: on the device, and as copies on the host that nobody waits for.
#pragma once

#include <torch/torch.h>

#include <vector>

namespace ddprun::train {

// What a micro-batch gave.
struct MicroResult {
  torch::Tensor loss;     // mean over its samples
  torch::Tensor correct;  // undefined where accuracy has no meaning
  double share = 1;       // of the rank's samples in the step
};

struct StepResults {
  std::vector<MicroResult> parts;
  torch::Tensor scale, overflow;  // fp16, where the GPU itself skips a step
};

// A copy on the host of what the current stream of a GPU is about to compute, in page-locked memory: good once the
// stream has passed what is queued next. Undefined for an undefined one.
inline torch::Tensor copy_late(const torch::Tensor& tensor) {
  constexpr bool non_blocking = true;  // into page-locked memory, as Tensor::to makes it then
  return tensor.defined() ? tensor.to(torch::kCPU, non_blocking) : tensor;
}

inline StepResults copy_late(const StepResults& results) {
  StepResults copies;
  for (const MicroResult& part : results.parts) {
    copies.parts.push_back({copy_late(part.loss), copy_late(part.correct), part.share});
  }
  copies.scale = copy_late(results.scale);
  copies.overflow = copy_late(results.overflow);
  return copies;
}

}  // namespace ddprun::train
