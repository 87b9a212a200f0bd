// The position of a training: all that the loop needs to resume as if it had never stopped.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/text.hpp"
#include "checkpoint/safetensors.hpp"
#include "ddprun/error.hpp"
#include "ddprun/records.hpp"

namespace ddprun::train {

// Totals over the steps of an epoch on this rank.
struct EpochTotals {
  double loss = 0;  // sum of loss * samples
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

// The name under which the measured speed of a rank is kept, for LoadBalance.
inline std::string speed_name(int rank) {
  return "speed." + std::to_string(rank);
}

struct Position {
  int64_t step = 0;           // steps done in the run
  int64_t epoch = 0;          // current epoch, from 0
  int64_t step_of_epoch = 0;  // steps done in this epoch; all of them if only the evaluation is left
  EpochTotals totals;         // of those steps
  // Other values that are kept from step to step, by name ("best.value").
  std::map<std::string, double> numbers;
};

// Writes a position to a file's metadata and reads it back; doubles are exact. Reading throws Error(usage) that names
// the file and the key that is missing or is not a number.
void write_position(const Position& position, checkpoint::Metadata& metadata);
Position read_position(const checkpoint::File& file);

// A required number of a file's metadata. Throws as read_position() does.
template <class Number>
Number number_of(const checkpoint::File& file, const std::string& key) {
  const auto found = file.metadata.find(key);
  if (found != file.metadata.end()) {
    if (const auto value = parse_number<Number>(found->second)) return *value;
  }
  throw Error(ExitCode::usage, file.path + ": \"" + key + "\" is missing or no number: not a state of this ddprun");
}

}  // namespace ddprun::train
