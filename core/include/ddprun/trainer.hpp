// Trainer: trains and evaluates one model on one rank, together with the other ranks.
#pragma once

#include <cstdint>
#include <limits>

#include "ddprun/records.hpp"

namespace ddprun {

// The result of one pass over the test set, over all ranks.
struct Evaluation {
  double loss = 0;                                             // mean over the samples
  double accuracy = std::numeric_limits<double>::quiet_NaN();  // 0..1; NaN if accuracy is undefined
  int64_t samples = 0;
};

// Single-threaded. All ranks construct the same trainer and call the same functions.
class Trainer {
 public:
  virtual ~Trainer() = default;
  // Trains to the configured end, from the beginning or from a checkpoint, unless a callback stops it earlier. Throws
  // Error(failure) when the loss is no longer finite. Exceptions of the reducer, the backend, data sets and callbacks
  // pass through.
  virtual record::Summary fit() = 0;
  // One pass over the test set in evaluation mode, every sample once. Collective. There must be a test set.
  virtual Evaluation evaluate() = 0;
};

}  // namespace ddprun
