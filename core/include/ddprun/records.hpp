// The plain structs of a run's measurements. All times are seconds of wall clock; a double that is NaN, an int64_t that
// is negative and a string that is empty mean "not measured", and are left out of the files.
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
  int64_t epoch = 1;         // from 1
  int64_t step = 1;          // global, from 1
  int64_t samples = 0;       // of this rank
  double loss = kAbsent;     // mean over this rank's samples
  double correct = kAbsent;  // how many of this rank's samples are right; absent where accuracy has no meaning
  double data = 0;           // waited for the loader
  double forward = 0;        // forward and loss
  double backward = 0;       // until autograd had the last gradient
  double comm = 0;           // exposed communication: what the reducer needed after that; of dp, the four below
  double optimizer = 0;
  // Of a step that a GPU replayed as a CUDA graph: all that it did, in one; forward, backward, comm and optimizer are
  // absent then.
  double graph = kAbsent;
  double total = 0;  // of the whole step: those above and what lies between them
  // Strategy dp: the parts of comm.
  double scatter = kAbsent, replicate = kAbsent, gather = kAbsent, reduce = kAbsent;
  double lr = kAbsent;     // learning rate that the optimizer used
  double scale = kAbsent;  // fp16: the loss scale
  int64_t skipped = -1;    // fp16: 1 where gradients overflowed and the optimizer made no step

  // Strategy dp: adds the four parts to comm.
  void add_comm_parts() {
    if (!std::isnan(scatter)) comm += scatter + replicate + gather + reduce;
  }
};

inline bool is_replayed(const StepRecord& step) {
  return !std::isnan(step.graph);
}

// What one GPU of a rank was at after a step.
struct GpuRecord {
  int64_t step = 1;        // global, from 1
  int64_t device = 0;      // by CUDA's numbers
  int64_t allocated = -1;  // the most bytes that this rank's tensors took so far
  int64_t reserved = -1;   // the most bytes that LibTorch had taken for them
  // Of the whole GPU, whoever uses it, as NVML tells it.
  int64_t utilization = -1;  // per cent of the last moments in which a kernel ran
  int64_t memory_used = -1;  // bytes
  int64_t temperature = -1;  // degrees Celsius
  double power = kAbsent;    // watts
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
  // Of the average step. From scatter to reduce: strategy dp, the parts of comm.
  struct {
    double forward = kAbsent, backward = kAbsent, comm = kAbsent, optimizer = kAbsent;
    double scatter = kAbsent, replicate = kAbsent, gather = kAbsent, reduce = kAbsent;
    double graph = kAbsent;  // where steps were replayed: theirs, and the first four are those of the others
  } split;
  int64_t steps = -1, epochs = -1;
  int64_t best_epoch = -1;  // that checkpoint.best kept
  std::string stopped;      // "interrupted", "early_stop"; empty for a full run
  int64_t world = -1;
  int64_t devices = -1;                   // dp: replicas
  int64_t batch = -1;                     // samples of all ranks in a step
  std::vector<int64_t> samples_per_rank;  // of a full step, by rank, where they are not equal
  int64_t seed = -1;
  std::string model, data, strategy;
  std::string backend;                    // as asked for
  std::string algorithm;                  // that served
  std::string transport;                  // that served
  int64_t comm_bytes = -1;                // gradient payload that a rank allreduces in a step
  double comm_time = kAbsent;             // of the average step: what allreduces took, hidden or not
  double comm_busbw = kAbsent;            // bytes per second
  std::vector<int64_t> memory_by_device;  // dp: bytes
  int64_t peak_memory_bytes = -1;         // the most of any rank
  // Minor page faults in a step, without the first few steps, in which memory is new; the most of any rank.
  double page_faults = kAbsent;
  std::vector<std::pair<std::string, double>> learned;  // "weight" -> 2.0, from the model
};

// What a tensor held, short enough to be written for every parameter.
struct TensorDigest {
  std::string hash;  // 16 hexadecimal digits; equal for equal bytes
  double norm = 0;   // Euclidean
  // sketch[k] = sum over i of sign_k(i) * x_i with fixed pseudo-random signs, the same in every run: the mean over k of
  // (a.sketch[k] - b.sketch[k])^2 estimates |a - b|^2 (Alon, Matias and Szegedy 1996).
  std::vector<double> sketch;
};

// One parameter in one of the first log.parity_steps steps of one rank.
struct ParityRecord {
  int64_t step = 1;  // global, from 1
  std::string parameter;
  int64_t elements = 0;
  TensorDigest gradient;  // as the optimizer gets it
  TensorDigest value;     // after the optimizer step
  // ddp: distance of the reduced gradient's elements from the float64 mean of all ranks' local ones, in units in the
  // last place of float32.
  double ulp_max = kAbsent, ulp_mean = kAbsent;
};

}  // namespace ddprun::record
