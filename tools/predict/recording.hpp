// What predict needs of a run: the parts of its steps, and when its buckets were full.
#pragma once

#include <string>
#include <vector>

#include "tools/predict/replay.hpp"

namespace ddprun::predict {

struct Recording {
  std::string name;              // of the run: model and data
  std::vector<StepParts> steps;  // of the slowest rank in each step; without the first and the traced steps
  std::vector<Bucket> buckets;   // in the order in which they are reduced; the median over ranks and traced steps
  double samples = 0;            // of rank 0 in a full step
  bool is_checked = true;        // comm.check: between hosts, the ranks compare each call
};

// Reads the folder of a run with strategy ddp on CPUs that has traced a step (log.trace_steps). Throws Error(usage)
// with the path or the key if something is missing.
Recording read_recording(const std::string& run_dir);

// The step as long as the median of these steps, with parts in proportion to their medians: together, the medians of
// the parts can be less than any step.
StepParts typical_of(const std::vector<StepParts>& steps);

}  // namespace ddprun::predict
