// LoadBalance: splits each step's samples among the ranks in proportion to their speed.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "train/loop/callback.hpp"

namespace ddprun::train {

// Measures the speed of every rank in the first steps of a run, and sets the batch weights from these speeds. A resumed
// run uses the speeds that were measured before.
class LoadBalance final : public Callback {
 public:
  // steps: number of steps to measure, at least 1. If there are several, the first does not count, because its memory
  // is new. on_change(samples) is called with the samples of a full step by rank when they change; it may be empty.
  LoadBalance(int64_t steps, std::function<void(const std::vector<int64_t>& samples)> on_change)
      : steps_(steps), on_change_(std::move(on_change)) {}

  void on_fit_start(LoopState& state) override;
  void on_step_end(const record::StepRecord& record, int64_t step_of_epoch, LoopState& state) override;

 private:
  void add(const record::StepRecord& step);
  double speed() const;
  void apply(LoopState& state) const;

  const int64_t steps_;
  const std::function<void(const std::vector<int64_t>&)> on_change_;
  int64_t seen_ = 0;
  double seconds_ = 0;
  int64_t samples_ = 0;
};

}  // namespace ddprun::train
