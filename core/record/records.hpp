// The plain structs of a run's measurements. All times are seconds of wall clock; a double that is NaN, an int64_t that
// is negative and a string that is empty mean "not measured", and are left out of the files.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace ddprun::record {

inline constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

// One training step of one rank.
struct StepRecord {
  int64_t epoch = 1;         // from 1
  int64_t step = 1;          // global, from 1
  int64_t samples = 0;       // of this rank
  double loss = kAbsent;     // mean over this rank's samples
  double correct = kAbsent;  // how many of this rank's samples are right; absent where accuracy has no meaning
  double data = 0;           // waited for the loader
  double forward = 0;        // forward and loss
  double backward = 0;       // until autograd had the last gradient
  double comm = 0;           // exposed communication: what the reducer needed after that
  double optimizer = 0;
  double total = 0;  // of the whole step: the five above and what lies between them
};

// One epoch, all ranks.
struct EpochRecord {
  int64_t epoch = 1;                  // from 1
  double train_loss = kAbsent;        // mean over the samples of all ranks
  double train_accuracy = kAbsent;    // 0..1
  std::vector<double> per_rank_loss;  // mean over each rank's samples, in rank order
  double test_loss = kAbsent;
  double test_accuracy = kAbsent;  // 0..1
  double seconds = kAbsent;        // training and evaluation
};

// The whole run, all ranks. avg_... are over all steps of this rank.
struct Summary {
  double test_accuracy = kAbsent;  // 0..1
  double test_loss = kAbsent;
  double train_loss = kAbsent;  // of the last epoch
  double total_time = kAbsent;  // of training, from a barrier to a barrier
  double avg_batch_time = kAbsent;
  double avg_data_time = kAbsent;
  double avg_compute_time = kAbsent;  // of the average step, all but the wait for data
  double throughput = kAbsent;        // samples per second, all ranks
  struct {
    double forward = kAbsent, backward = kAbsent, comm = kAbsent, optimizer = kAbsent;
  } split;  // of the average step
  int64_t steps = -1, epochs = -1;
  int64_t world = -1;
  int64_t seed = -1;
  std::string model, data, strategy;
  std::string backend;    // as asked for
  std::string algorithm;  // that served
  std::string transport;  // that served
  int64_t peak_memory_bytes = -1;  // the most of any rank
  // Minor page faults in a step, without the first few steps, in which memory is new; the most of any rank.
  double page_faults = kAbsent;
  std::vector<std::pair<std::string, double>> learned;  // "weight" -> 2.0, from the model
};

}  // namespace ddprun::record
