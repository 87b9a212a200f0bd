// The results of a step besides weights: on the device, with asynchronous copies to the host.
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
  torch::Tensor correct;  // scalar; undefined if accuracy is undefined
  double fraction = 1;    // of the rank's samples in the step
};

struct StepResults {
  std::vector<MicroResult> parts;
  torch::Tensor scale, overflow;  // scalars; fp16, if the GPU itself skips steps with overflow
};

// An asynchronous copy, in page-locked memory, of what a GPU's current stream is computing. It is valid when the stream
// has passed this copy. Returns an undefined tensor for an undefined tensor.
inline torch::Tensor copy_to_host(const torch::Tensor& tensor) {
  constexpr bool non_blocking = true;  // Tensor::to allocates page-locked memory for such copies
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

// A step that is done or, on a GPU, queued. On a GPU the results are valid when the GPU has passed the last mark. On a
// CPU the record is complete and the other members are empty.
struct PendingStep {
  record::StepRecord record;
  int64_t step_of_epoch = 0;  // from 1
  Marks marks;
  StepResults results;
};

}  // namespace ddprun::train
