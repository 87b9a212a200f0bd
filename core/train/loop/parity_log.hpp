// parity-rank<N>.jsonl: what the gradients and weights of the first steps were, to find where two runs part.
#pragma once

#include <string>
#include <vector>

#include "base/file.hpp"
#include "record/records.hpp"
#include "train/loop/parameters.hpp"
#include "train/loop/ulp.hpp"

namespace ddprun::train {

// One thread. Writing throws Error(failure) with path and errno's words.
class ParityLog {
 public:
  // For so many steps of this run; the file is made at once.
  ParityLog(const std::string& run_dir, int rank, std::vector<NamedTensor> parameters, int64_t steps);

  // Whether the step under way is one of them.
  bool wanted() const { return steps_left_ > 0; }
  // ddp: the distances of this step's reduced gradients, by parameter.
  void note_distances(std::vector<UlpDistance> distances) { distances_ = std::move(distances); }
  // When the gradients are those that the optimizer is about to use.
  void note_gradients();
  // After the optimizer: writes the step's lines.
  void write(int64_t step);

 private:
  const std::vector<NamedTensor> parameters_;
  int64_t steps_left_;
  OutputFile file_;
  std::vector<record::TensorDigest> gradients_;
  std::vector<UlpDistance> distances_;
};

}  // namespace ddprun::train
