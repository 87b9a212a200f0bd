// What a step computes besides weights: on the device, and as copies on the host that nobody waits for.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "ddprun/records.hpp"
#include "train/loop/step_timer.hpp"

namespace ddprun::train {

// Of a micro-batch.
struct MicroResult {
  torch::Tensor loss;     // scalar: mean over its samples
  torch::Tensor correct;  // scalar; undefined where accuracy has no meaning
  double fraction = 1;    // of the rank's samples in the step
};

struct StepResults {
  std::vector<MicroResult> parts;
  torch::Tensor scale, overflow;  // scalars; fp16, where the GPU itself skips a step
};

// A copy in page-locked memory of what the current stream of a GPU is about to compute. It is valid once the stream has
// passed what is queued next. Undefined for an undefined tensor.
inline torch::Tensor copy_to_host(const torch::Tensor& tensor) {
  constexpr bool non_blocking = true;  // into page-locked memory, as Tensor::to makes it then
  return tensor.defined() ? tensor.to(torch::kCPU, non_blocking) : tensor;
}

inline StepResults copy_to_host(const StepResults& results) {
  StepResults copies;
  for (const MicroResult& part : results.parts) {
    copies.parts.push_back({copy_to_host(part.loss), copy_to_host(part.correct), part.fraction});
  }
  copies.scale = copy_to_host(results.scale);
  copies.overflow = copy_to_host(results.overflow);
  return copies;
}

// A step that is done, or, on a GPU, queued. On a GPU the results are valid once the GPU has passed the last mark; on a
// CPU the record is complete and the rest is empty.
struct PendingStep {
  record::StepRecord record;
  int64_t step_of_epoch = 0;  // from 1
  Marks marks;
  StepResults results;
};

}  // namespace ddprun::train
