// The measurements of a run, as plain structs. Times are seconds of wall clock. NaN, a negative int64_t and an empty
// string mean "not measured"; such values are not written to the files.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace ddprun::record {

inline constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

// One training step of one rank.
struct StepRecord {
  int64_t epoch = 1;      // from 1
  int64_t step = 1;       // global, from 1
  int64_t samples = 0;    // of this rank
  double loss = kAbsent;  // mean over this rank's samples
  // how many of this rank's samples were predicted correctly; absent if accuracy is undefined
  double correct = kAbsent;
  double accuracy = kAbsent;  // 0..1: correct / samples
  double data = 0;            // waiting for the DataLoader
  double forward = 0;         // forward and loss
  double backward = 0;        // until autograd had computed the last gradient
  // exposed communication: from the end of backward to the last reduced gradient; dp: the four parts below
  double comm = 0;
  double optimizer = 0;
  double total = 0;             // of the whole step: all of the above and the time between them
  double throughput = kAbsent;  // samples of this rank per second: samples / total
  // Strategy dp: the parts of comm.
  double scatter = kAbsent, replicate = kAbsent, gather = kAbsent, reduce = kAbsent;
  double lr = kAbsent;     // learning rate that the optimizer used
  double scale = kAbsent;  // fp16: the loss scale
  int64_t skipped = -1;    // 1: the gradients were not finite, and the optimizer made no step; 0: fp16, they were

  // Sets the members that follow from the others: accuracy, throughput, and under strategy dp comm.
  void complete() {
    accuracy = samples > 0 ? correct / static_cast<double>(samples) : kAbsent;
    throughput = total > 0 ? static_cast<double>(samples) / total : kAbsent;
    if (!std::isnan(scatter)) comm += scatter + replicate + gather + reduce;
  }
};

// The state of one GPU of a rank after a step.
struct GpuRecord {
  int64_t step = 1;        // global, from 1
  int64_t device = 0;      // CUDA device index
  int64_t allocated = -1;  // peak memory of this rank's tensors, in bytes
  int64_t reserved = -1;   // peak memory that LibTorch had reserved, in bytes
};

// The results of an epoch, all ranks. An accuracy is 0..1.
struct Metrics {
  double train_loss = kAbsent;  // mean over the samples of all ranks
  double validation_loss = kAbsent, validation_accuracy = kAbsent;
  double test_loss = kAbsent, test_accuracy = kAbsent;
};

// One epoch, all ranks.
struct EpochRecord : Metrics {
  int64_t epoch = 1;                  // from 1
  double train_accuracy = kAbsent;    // 0..1
  std::vector<double> per_rank_loss;  // mean over each rank's samples, in rank order
  double seconds = kAbsent;           // training and evaluation
};

// Each change of the ranks that the run has survived, in order.
struct Changes {
  std::vector<int64_t> after_step;  // the last finished step before
  std::vector<int64_t> ranks;       // that went on
  std::vector<double> seconds;      // from the end of this step until they went on
};

// The whole run, all ranks, with the results of the last epoch. avg_... are averages over all steps of this rank.
struct Summary : Metrics {
  double total_time = kAbsent;  // of training, between two barriers
  double avg_batch_time = kAbsent;
  double avg_data_time = kAbsent;
  double avg_compute_time = kAbsent;  // all but waits for data and communication
  double throughput = kAbsent;        // samples per second, all ranks
  // Average per step. scatter, replicate, gather and reduce: strategy dp, the parts of comm.
  struct {
    double forward = kAbsent, backward = kAbsent, comm = kAbsent, optimizer = kAbsent;
    double scatter = kAbsent, replicate = kAbsent, gather = kAbsent, reduce = kAbsent;
  } split;
  int64_t steps = -1, epochs = -1;
  int64_t best_epoch = -1;  // the epoch whose weights checkpoint.best kept
  std::string stopped;      // "interrupted", "early_stop"; empty for a full run
  int64_t world = -1;
  int64_t virtual_ranks = -1;  // strategy.virtual_ranks
  std::string weights_sha256;  // with virtual ranks: of parameters and buffers, in the order of their names
  Changes changes;
  int64_t devices = -1;                   // dp: number of replicas
  int64_t batch = -1;                     // global batch: samples of all ranks in a step
  std::vector<int64_t> samples_per_rank;  // batch weights: samples of a full step by rank, if they differ
  int64_t seed = -1;
  std::string model, data, strategy;
  std::string backend;                                  // as configured
  std::string algorithm;                                // as used
  std::string transport;                                // as used
  int64_t comm_bytes = -1;                              // gradient bytes that a rank allreduces in a step
  double comm_time = kAbsent;                           // average per step: time of all allreduces, hidden or exposed
  double comm_busbw = kAbsent;                          // bytes per second
  std::vector<int64_t> memory_by_device;                // dp on GPUs: peak bytes
  int64_t peak_memory_bytes = -1;                       // the maximum over the ranks
  std::vector<std::pair<std::string, double>> learned;  // "weight" -> 2.0, reported by the model
};

// A digest of a tensor's values, short enough to be logged for every parameter.
struct TensorDigest {
  std::string hash;  // 16 hexadecimal digits; equal for equal bytes
  double norm = 0;   // Euclidean
  // sketch[k] = sum over i of sign_k(i) * x_i with fixed pseudo-random signs, the same in every run. The mean over k of
  // (a.sketch[k] - b.sketch[k])^2 estimates |a - b|^2 (Alon, Matias and Szegedy 1996).
  std::vector<double> sketch;
};

// One parameter after one of the first log.parity_steps steps of one rank.
struct ParityRecord {
  int64_t step = 1;  // global, from 1
  std::string parameter;
  int64_t elements = 0;
  TensorDigest gradient;  // as the optimizer receives it
  TensorDigest value;     // after the optimizer step
};

}  // namespace ddprun::record
