// Trainer: trains and evaluates one model on one rank, together with the other ranks.
#pragma once

#include <cstdint>
#include <limits>

#include "ddprun/records.hpp"

namespace ddprun {

// What a pass over the test set gave, over all ranks.
struct Evaluation {
  double loss = 0;                                             // mean over the samples
  double accuracy = std::numeric_limits<double>::quiet_NaN();  // 0..1; NaN where it has no meaning
  int64_t samples = 0;
};

// One thread. All ranks make the same trainer and call the same functions.
class Trainer {
 public:
  virtual ~Trainer() = default;
  // Trains to the configured end, from the beginning or from where a checkpoint resumes, or until a callback stops it.
  // Throws Error(failure) when the loss is no longer finite; what the reducer, the backend, data sets and callbacks
  // throw passes through.
  virtual record::Summary fit() = 0;
  // One pass over the test set, every sample once, in evaluation mode.
  virtual Evaluation evaluate() = 0;
};

}  // namespace ddprun
