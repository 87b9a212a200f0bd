// A step that a GPU was told to make, and may still be at.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "record/records.hpp"
#include "train/step_timer.hpp"

namespace ddprun::train {

// What a micro-batch gave.
struct MicroResult {
  torch::Tensor loss;     // mean over its samples
  torch::Tensor correct;  // undefined where accuracy has no meaning
  double share = 1;       // of the rank's samples in the step
};

// The tensors are on the host, in page-locked memory that the GPU writes to: good once it has passed the last mark. On
// a CPU the record is whole and the rest empty.
struct IssuedStep {
  record::StepRecord record;
  int64_t step_of_epoch = 0;  // from 1
  Marks marks;
  std::vector<MicroResult> results;
  torch::Tensor scale, overflow;  // fp16, where the GPU itself skips a step
};

// A copy on the host of what a stream of a GPU is about to compute. Does not wait for it.
inline torch::Tensor copy_late(const torch::Tensor& tensor) {
  constexpr bool non_blocking = true;  // into page-locked memory, as Tensor::to makes it then
  return tensor.detach().to(torch::kCPU, non_blocking);
}

}  // namespace ddprun::train
