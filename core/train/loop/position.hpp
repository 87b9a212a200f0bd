// Where a fit stands: what the loop itself has to know to go on as if it had never stopped.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "checkpoint/safetensors.hpp"
#include "ddprun/records.hpp"

namespace ddprun::train {

// What the steps of an epoch add up to on this rank.
struct EpochTotals {
  double loss = 0;  // times samples
  double correct = 0;
  int64_t samples = 0;

  void add(const record::StepRecord& step) {
    if (step.samples == 0) return;
    loss += step.loss * static_cast<double>(step.samples);
    correct += step.correct;
    samples += step.samples;
  }
  EpochTotals& operator+=(const EpochTotals& other) {
    loss += other.loss;
    correct += other.correct;
    samples += other.samples;
    return *this;
  }
  double mean_loss() const { return loss / static_cast<double>(samples); }
};

// Names of Position::numbers.
inline const std::string kBestValue = "best.value", kBestEpoch = "best.epoch";

// The measured speed of a rank, for the load balance.
inline std::string speed_name(int rank) {
  return "speed." + std::to_string(rank);
}

struct Position {
  int64_t step = 0;           // global, done
  int64_t epoch = 0;          // under way, from 0
  int64_t step_of_epoch = 0;  // done; all of them where the epoch is only to be judged
  EpochTotals totals;         // of those steps
  // What else the loop keeps from step to step, by name ("best.value").
  std::map<std::string, double> numbers;
};

// Into a file's metadata and back, doubles exactly. Reading throws Error(usage) that names the file and the word that
// is missing or no number.
void write_position(const Position& position, checkpoint::Metadata& metadata);
Position read_position(const checkpoint::File& file);

// The shortest text that reads back as the same double.
std::string exact_text(double value);

// A whole number that a file's metadata must have; throws as read_position() does.
int64_t whole_of(const checkpoint::File& file, const std::string& key);
// The same of a double.
double double_of(const checkpoint::File& file, const std::string& key);

}  // namespace ddprun::train
