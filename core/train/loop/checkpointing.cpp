#include "train/loop/checkpointing.hpp"

#include "train/loop/metric.hpp"
#include "train/loop/rank_group.hpp"
#include "train/loop/step_monitor.hpp"

namespace ddprun::train {

void CheckpointCallback::on_fit_start(LoopState& state) {
  state.ranks.heartbeat_barrier("reading the checkpoint", [&] { state.at = checkpointer_.restore(); });
  checkpointer_.restore_together();
}

void CheckpointCallback::on_epoch_trained(LoopState& state) {
  const int64_t epochs = state.at.epoch + 1;
  if ((every_ > 0 && epochs % every_ == 0) || state.ends_after(epochs)) commit(state);
}

void CheckpointCallback::on_fit_end(LoopState& state) {
  if (state.stopped == kEarlyStop && committed_ != state.at.step) commit(state);
}

void CheckpointCallback::commit(LoopState& state) {
  const std::string doing = "saving a checkpoint";
  state.monitor.phase(Phase::checkpoint);
  state.ranks.heartbeat_barrier(doing, [&] { checkpointer_.save_state(state.at); });
  state.ranks.heartbeat_barrier_of_rank0(doing, [&] { checkpointer_.save(state.at.step, state.complete_epochs()); });
  committed_ = state.at.step;
}

void BestWeights::on_epoch_end(const record::EpochRecord& record, LoopState& state) {
  state.ranks.heartbeat_barrier_of_rank0("saving the best weights", [&] {
    const double value = needed_metric(record, metric_, "checkpoint.best");
    const auto best = state.at.numbers.find(kBestValue);
    if (best != state.at.numbers.end() && !is_better(metric_, value, best->second)) return;
    state.at.numbers[kBestValue] = value;
    state.at.numbers[kBestEpoch] = static_cast<double>(record.epoch);
    state.monitor.phase(Phase::checkpoint);
    checkpointer_.save_best(state.at.step, record.epoch, value);
  });
}

}  // namespace ddprun::train
