// Parity: where two runs start to differ.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "ddprun/records.hpp"
#include "train/loop/observer.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::train {

// parity-rank<N>.jsonl: digests of gradients and weights of the first steps, to find where two runs start to differ.
// Single-threaded. Writing throws Error(failure) with the path and errno's text.
class ParityLog final : public Observer {
 public:
  // Logs the first `steps` steps of this run. The constructor creates the file.
  ParityLog(const std::string& run_dir, int rank, std::vector<NamedTensor> parameters, int64_t steps);

  void before_optimizer_step(int64_t step) override;
  // Writes the step's lines.
  void after_optimizer_step(int64_t step) override;

 private:
  const std::vector<NamedTensor> parameters_;
  int64_t steps_left_;
  OutputFile file_;
  std::vector<record::TensorDigest> gradients_;
};

}  // namespace ddprun::train
