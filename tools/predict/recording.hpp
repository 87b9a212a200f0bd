// What predict needs of a run: the parts of its steps, and when its buckets were full.
#pragma once

#include <string>
#include <vector>

#include "tools/predict/replay.hpp"

namespace ddprun::predict {

struct Recording {
  std::string name;              // of the run: model and data
  std::vector<StepParts> steps;  // of the slowest rank in each step; without the first two and the traced steps
  std::vector<Bucket> buckets;   // in the order in which they are reduced; the median over ranks and traced steps
  double samples = 0;            // of rank 0 in a full step
  bool is_checked = true;        // comm.check: between hosts, the ranks compare each call
};

// Reads the folder of a run with strategy ddp on CPUs that has traced a step after the second one (log.trace_steps).
// Throws Error(usage) with the path and the reason: no such folder, another strategy, ZeRO, a CUDA graph, no such
// trace, or fewer than 10 steps that are neither traced nor the first two.
Recording read_recording(const std::string& run_dir);

// The step as long as the median of these steps, with parts in proportion to their medians: together, the medians of
// the parts can be less than any step.
StepParts typical_of(const std::vector<StepParts>& steps);

}  // namespace ddprun::predict
