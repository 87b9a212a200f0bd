// The speed figures from a run's records, without the first steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/lib/run.hpp"

namespace ddprun::compare {

// The average step in seconds. The parts add up to the step; "other" is the rest.
struct Split {
  double data = 0;     // wait for the DataLoader
  double forward = 0;  // with the loss
  double backward = 0;
  double comm = 0;  // exposed communication
  double optimizer = 0;
  double other = 0;
  // Under dp, the parts of comm.
  double replicate = record::kAbsent, scatter = record::kAbsent, gather = record::kAbsent, reduce = record::kAbsent;

  double total() const { return data + forward + backward + comm + optimizer + other; }
  double compute() const { return total() - data - comm; }  // all but the two waits
  bool is_measured() const { return other < total(); }      // false: only the step is known
};

struct PartOfStep {
  const char* name;  // "data wait"
  double Split::*member;
  double record::StepRecord::*recorded;  // null for "other"
};
using record::StepRecord;
inline constexpr PartOfStep kPartsOfStep[] = {{"data wait", &Split::data, &StepRecord::data},
                                              {"forward", &Split::forward, &StepRecord::forward},
                                              {"backward", &Split::backward, &StepRecord::backward},
                                              {"exposed communication", &Split::comm, &StepRecord::comm},
                                              {"optimizer", &Split::optimizer, &StepRecord::optimizer},
                                              {"other", &Split::other, nullptr}};
inline constexpr PartOfStep kPartsOfDp[] = {{"replicate", &Split::replicate, &StepRecord::replicate},
                                            {"scatter", &Split::scatter, &StepRecord::scatter},
                                            {"gather", &Split::gather, &StepRecord::gather},
                                            {"reduce", &Split::reduce, &StepRecord::reduce}};

// Figures of one run. All except losses, memory and communication count the steps after warm-up of the rank with the
// largest total step time: in a synchronous step the other ranks wait for it.
struct Figures {
  double total_time = 0;  // seconds, all these steps
  double step = 0;        // seconds, on average
  double throughput = 0;  // samples per second, all ranks
  Split split;
  std::vector<double> step_times;        // of each step, in order
  std::vector<double> losses;            // each step, with warm-up: mean over samples of all ranks, or NaN
  int64_t first_step = 1;                // of step_times
  int64_t first_loss_step = 1;           // of losses; a resumed run does not begin with step 1
  int64_t samples = 0;                   // all ranks
  double comm_bytes = record::kAbsent;   // allreduced per rank and step
  double comm_time = record::kAbsent;    // seconds of allreduce per step, hidden or exposed
  double busbw = record::kAbsent;        // bytes per second
  double peak_memory = record::kAbsent;  // bytes, the rank with the most
  double test_loss = record::kAbsent, test_accuracy = record::kAbsent;
  double other_cpu = record::kAbsent;  // share of a machine's CPU time that other programs used meanwhile
  double load = record::kAbsent;       // of rank 0's host at the start: runnable threads, the average of a minute
  std::string algorithm, transport;    // of the communication
};

// Throws Error(usage) if the run has no step after `warmup_steps`, or its ranks have different numbers of steps.
Figures figures_of(const tools::Run& run, int64_t warmup_steps);

// The median of each figure over runs, and the quartiles of the step time. The split and the lists of steps are those
// of one run, the one with the median step time (the lower one of two): medians of parts, taken each by itself, would
// not add up to a step.
struct Typical {
  Figures figures;
  double step_low = 0, step_high = 0;
};
Typical typical_of(const std::vector<Figures>& runs);  // at least one

// The part of the step that a change of these keys is about. data.*: data wait. optimizer.*: the optimizer. All others:
// exposed communication, which is where strategies and backends differ.
double Split::*lever_of(const std::vector<std::string>& keys_that_differ);

// The largest part, and the lever with the step's time without it (Amdahl 1967):
// "62 % data wait, 3 % exposed communication; without the latter, a step would be 3 % faster".
std::string ceiling_of(const Split& split, double Split::*lever);

// The differences of the parts, if they are at least a twentieth of the largest; what is slower first: "exposed
// communication +2.31 ms, optimizer +177 us, forward -12.0 us".
std::string difference_of(const Split& slower, const Split& faster);

}  // namespace ddprun::compare
