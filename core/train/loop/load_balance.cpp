#include "train/loop/load_balance.hpp"

#include <algorithm>

#include "train/loop/data_loader.hpp"
#include "train/tensor/rank_group.hpp"

namespace ddprun::train {

void LoadBalance::on_fit_start(LoopState& state) {
  if (state.at.numbers.contains(speed_name(0))) apply(state);
}

void LoadBalance::on_step_end(const record::StepRecord& record, int64_t, LoopState& state) {
  if (state.ranks.size() == 1 || state.at.numbers.contains(speed_name(0))) return;
  add(record);
  if (seen_ < steps_) return;
  const std::vector<double> speeds = state.ranks.gather(speed());
  for (std::size_t rank = 0; rank < speeds.size(); ++rank) {
    state.at.numbers[speed_name(static_cast<int>(rank))] = speeds[rank];
  }
  apply(state);
  state.train.start(state.at.epoch, state.at.step_of_epoch);
}

void LoadBalance::add(const record::StepRecord& step) {
  ++seen_;
  if (seen_ == 1 && steps_ > 1) return;
  seconds_ += step.forward + step.backward;
  samples_ += step.samples;
}

// Samples per second of forward and backward; positive.
double LoadBalance::speed() const {
  constexpr double kLeastSeconds = 1e-9;
  return static_cast<double>(std::max<int64_t>(samples_, 1)) / std::max(seconds_, kLeastSeconds);
}

void LoadBalance::apply(LoopState& state) const {
  std::vector<double> speeds;
  for (int rank = 0; rank < state.ranks.size(); ++rank) speeds.push_back(state.at.numbers.at(speed_name(rank)));
  state.train.set_batch_weights(speeds);
  if (on_change_) on_change_(state.train.samples_per_rank());
}

}  // namespace ddprun::train
