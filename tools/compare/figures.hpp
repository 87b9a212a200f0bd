// What a run's records say of its speed, once the first steps are left out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "record/read.hpp"

namespace ddprun::compare {

// The average step in seconds. The parts add up to the step; "other" is what lies between them.
struct Split {
  double data = 0;     // waited for the loader
  double forward = 0;  // with the loss
  double backward = 0;
  double comm = 0;  // exposed communication
  double optimizer = 0;
  double other = 0;
  double graph = 0;  // of steps that were replayed as a CUDA graph: forward to optimizer, not told apart

  double total() const { return data + forward + backward + comm + optimizer + graph + other; }
  double compute() const { return total() - data - comm; }
};

struct PartOfStep {
  const char* name;  // "data wait"
  double Split::*member;
};
// In their order; the graph is one only where a step of `splits` was replayed.
std::vector<PartOfStep> parts_of_step(const std::vector<Split>& splits);

// Of one run. All but the losses, memory and communication are over the steps after the warm-up, of the rank whose
// steps took longest altogether: in a synchronous step the others wait for it.
struct Figures {
  double total_time = 0;  // seconds: all of these steps
  double step = 0;        // seconds: the average one
  double throughput = 0;  // samples per second, all ranks
  Split split;
  std::map<std::string, double> dp;      // "scatter", "replicate", "gather", "reduce" of the average step, under dp
  std::vector<double> step_times;        // of each step, in order
  std::vector<double> losses;            // of every step, warm-up too: mean over the samples of all ranks; NaN for none
  int64_t first_step = 1;                // of step_times
  int64_t samples = 0;                   // all ranks
  double comm_bytes = record::kAbsent;   // a rank allreduces in a step
  double comm_time = record::kAbsent;    // seconds of allreduces in a step, hidden or not
  double busbw = record::kAbsent;        // bytes per second
  double peak_memory = record::kAbsent;  // bytes, the rank with the most
  double test_loss = record::kAbsent, test_accuracy = record::kAbsent;
  std::string algorithm, transport;  // that served
};

// Throws Error(usage) where the run has no step after `warmup_steps`, or its ranks have not the same steps.
Figures figures_of(const record::Run& run, int64_t warmup_steps);

// The median of each figure over runs, and for the step the runs' quartiles. Lists of steps are those of the run whose
// step is the median (the lower one of two).
struct Typical {
  Figures figures;
  double step_low = 0, step_high = 0;
};
Typical typical_of(const std::vector<Figures>& runs);  // at least one

}  // namespace ddprun::compare
