// What predict needs of a run: the parts of its steps, when its buckets were full, and a step on other ranks made of
// them. Times in seconds.
#pragma once

#include <string>
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

struct Recording {
  std::string name;              // of the run: model and data
  std::vector<StepParts> steps;  // of the slowest rank in each step; without the first two and the traced steps
  std::vector<Bucket> buckets;   // in the order in which they are reduced; the median over ranks and traced steps
  double samples = 0;            // of rank 0 in a full step
  bool is_checked = true;        // comm.check: between hosts, the ranks compare each call
};

// Reads the folder of a run with strategy ddp on CPUs that has traced a step after the second one (log.trace_steps).
// Throws Error(usage) with the path and the reason: no such folder, another strategy, ZeRO, no such
// trace, or fewer than 10 steps that are neither traced nor the first two.
Recording read_recording(const std::string& run_dir);

// The step as long as the median of these steps, with parts in proportion to their medians: together, the medians of
// the parts can be less than any step.
StepParts typical_of(const std::vector<StepParts>& steps);

}  // namespace ddprun::predict
