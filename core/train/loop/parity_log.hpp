// parity-rank<N>.jsonl: what the gradients and weights of the first steps were, to find where two runs part.
#pragma once

#include <string>
#include <vector>

#include "base/file.hpp"
#include "ddprun/records.hpp"
#include "train/loop/callback.hpp"
#include "train/loop/parameters.hpp"
#include "train/loop/ulp.hpp"

namespace ddprun::train {

// One thread. Writing throws Error(failure) with the path and errno's text.
class ParityLog final : public Callback {
 public:
  // For so many steps of this run; the file is made at once.
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
