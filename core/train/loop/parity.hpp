// Measures where the results of two runs start to differ (ParityLog), and how much the allreduce rounds
// (ParityReducer).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "comm/group.hpp"
#include "ddprun/records.hpp"
#include "ddprun/reducer.hpp"
#include "train/loop/observer.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::train {

// The distances of all elements added so far. A distance is |reduced - reference| in units in the last place (ULP) of
// float32, where the reference, a float64 mean over the ranks, is rounded to float32 first. The unit is that of the
// mean magnitude of the terms. If all terms have the same sign, this is the unit of the reference. If terms cancel, the
// reference is near zero, and its own unit would make the unavoidable rounding of the terms look large.
class UlpDistance {
 public:
  // reduced: an element after the allreduce. reference and magnitude: the means over the ranks of the terms and of
  // their absolute values.
  void add(float reduced, double reference, double magnitude);

  double max() const { return count_ == 0 ? record::kAbsent : max_; }
  double mean() const { return count_ == 0 ? record::kAbsent : sum_ / static_cast<double>(count_); }

 private:
  double max_ = 0;
  double sum_ = 0;
  int64_t count_ = 0;
};

// parity-rank<N>.jsonl: digests of gradients and weights of the first steps, to find where two runs start to differ.
// Single-threaded. Writing throws Error(failure) with the path and errno's text.
class ParityLog final : public Observer {
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

// Reduces through `inner`. While the log is active, it keeps a copy of every local gradient. After each finalize it
// sums the copies of all ranks in float64 and passes the distances between the reduced gradients and these sums to the
// log. Only for float32 gradients. It gathers the local gradients in pieces, so that it needs memory for one copy of
// the gradients and a few MiB. All arguments must outlive the result. Collective, as `inner` is.
std::unique_ptr<Reducer> parity_reducer(Reducer& inner, comm::Group ranks, std::vector<NamedTensor> parameters,
                                        ParityLog& log);

}  // namespace ddprun::train
