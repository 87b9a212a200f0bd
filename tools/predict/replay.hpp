// One training step on many ranks, from the parts of a recorded one. Pure functions; times in seconds.
#pragma once

#include <vector>

namespace ddprun::predict {

// The parts of a step that do not communicate.
struct StepParts {
  double forward = 0;  // and all before it: data, loss
  double backward = 0;
  double optimizer = 0;  // and all after it
  double total() const { return forward + backward + optimizer; }
  StepParts times(double factor) const { return {factor * forward, factor * backward, factor * optimizer}; }
};

struct Bucket {
  double bytes = 0;
  // The part of backward that is still to come when the bucket is full, 0 .. 1.
  double remaining = 0;
};

struct Replayed {
  double step = 0;     // the whole step
  double exposed = 0;  // from the end of backward to the end of the last allreduce
};

// Buckets are in the order in which they are reduced; allreduce[i] is the time of bucket i. An allreduce begins when
// its bucket is full and the one before it is over; the optimizer, when backward and the last allreduce are over.
Replayed replay(const StepParts& parts, const std::vector<Bucket>& buckets, const std::vector<double>& allreduce);

}  // namespace ddprun::predict
