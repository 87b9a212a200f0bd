// LoadBalance: gives each rank the part of a step's samples that its speed earns.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "train/loop/callback.hpp"

namespace ddprun::train {

// Measures the ranks' speeds in the first steps of a run, and weights each rank's part of the batch by its speed from
// the next step on. A resumed run uses the speeds that were measured before.
class LoadBalance final : public Callback {
 public:
  // steps: to measure, at least 1. The first of several does not count: its memory is new. on_change(samples) is called
  // with each rank's samples of a full step when they change; it may be empty.
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
