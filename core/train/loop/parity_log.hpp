// parity-rank<N>.jsonl: digests of gradients and weights of the first steps, to find where two runs start to differ.
#pragma once

#include <string>
#include <vector>

#include "base/file.hpp"
#include "ddprun/records.hpp"
#include "train/loop/callback.hpp"
#include "train/loop/parameters.hpp"
#include "train/loop/ulp.hpp"

namespace ddprun::train {

// Single-threaded. Writing throws Error(failure) with the path and errno's text.
class ParityLog final : public Callback {
 public:
  // Logs the first `steps` steps of this run. The constructor creates the file.
  ParityLog(const std::string& run_dir, int rank, std::vector<NamedTensor> parameters, int64_t steps);

  // Whether the current step is logged.
  bool is_active() const { return steps_left_ > 0; }
  // Under ddp: the distances of this step's reduced gradients, by parameter.
  void set_distances(std::vector<UlpDistance> distances) { distances_ = std::move(distances); }

  void before_optimizer_step(int64_t step) override;
  // Writes the step's lines.
  void after_optimizer_step(int64_t step) override;

 private:
  const std::vector<NamedTensor> parameters_;
  int64_t steps_left_;
  OutputFile file_;
  std::vector<record::TensorDigest> gradients_;
  std::vector<UlpDistance> distances_;
};

}  // namespace ddprun::train
