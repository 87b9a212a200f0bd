#include "train/loop/training_loop.hpp"

#include <algorithm>
#include <cmath>

#include "record/environment.hpp"
#include "train/optim/fused.hpp"
#include "train/optim/optimizers.hpp"

namespace ddprun::train {
namespace {

torch::Device device_of(const torch::nn::Module& module) {
  const auto parameters = module.parameters();
  return parameters.empty() ? torch::Device(torch::kCPU) : parameters.front().device();
}

FusedOptimizer* fused(const TrainerDeps& deps, bool on_gpu) {
  return on_gpu && deps.step.amp == Amp::fp16 ? dynamic_cast<FusedOptimizer*>(&deps.optimizer) : nullptr;
}

}  // namespace

int64_t LoopState::complete_epochs() const {
  return at.epoch + (at.step_of_epoch >= train.steps() ? 1 : 0);
}

TrainingLoop::TrainingLoop(TrainerDeps deps)
    : deps_(std::move(deps)),
      device_(device_of(deps_.model.module())),
      defers_(!device_.is_cpu()),
      fused_(fused(deps_, defers_)),
      monitor_(device_, deps_.observers),
      precision_(deps_.step.amp, device_, fused_),
      runner_(deps_, precision_, monitor_, defers_),
      state_{.plan = deps_.plan,
             .ranks = deps_.ranks,
             .train = deps_.train,
             .monitor = monitor_,
             .at = {},
             .stopped = {}} {
  deps_.strategy.attach(monitor_);
}

record::Summary TrainingLoop::fit() {
  start();
  int64_t epochs = state_.at.epoch;
  while (!state_.ends_after(epochs)) {
    const Stopwatch clock;
    // Only the first epoch of a resumed run may start in the middle.
    if (state_.at.epoch != epochs) state_.at = {monitor_.step, epochs, 0, {}, state_.at.numbers};
    record::EpochRecord record = train_epoch();
    ++epochs;
    if (deps_.checkpoints != nullptr) deps_.checkpoints->after_epoch(state_);
    if (state_.stopped.empty()) {
      evaluate_epoch(record);
      record.seconds = clock.total();
      end_epoch(record);
    }
    last_epoch_ = record;
  }
  for (Observer* each : deps_.observers) each->on_fit_end();
  return summarize();
}

void TrainingLoop::start() {
  monitor_.phase_of(0, Phase::setup);
  deps_.strategy.prepare();
  if (deps_.checkpoints != nullptr) deps_.checkpoints->resume(state_);
  for (Policy* each : deps_.policies) each->start(state_);
  precision_.restore(state_.at.numbers);
  monitor_.step = first_step_ = state_.at.step;
}

record::EpochRecord TrainingLoop::train_epoch() {
  TensorBatch batch;
  deps_.model.module().train();
  deps_.ranks.barrier();
  const Stopwatch clock;
  double saving = 0;
  deps_.train.start(state_.at.epoch, state_.at.step_of_epoch);
  monitor_.timer.restart();
  // Ranks that go on after a death may have done all steps.
  state_.stop = deps_.plan.steps && monitor_.step >= *deps_.plan.steps;
  while (!state_.stop) {
    if (defers_ && needs_sync(monitor_.step + 1)) flush();
    monitor_.phase_of(monitor_.step + 1, Phase::data);
    Stopwatch wait;
    if (!next(batch)) break;
    train_step(batch, wait.lap());
    const Decision decision = decide_after_step();
    state_.stopped = decision.stop;
    state_.stop = !state_.stopped.empty() || (deps_.plan.steps && monitor_.step >= *deps_.plan.steps);
    if (!state_.stop && decision.checkpoint && deps_.checkpoints != nullptr) saving += checkpoint();
  }
  flush_state();
  monitor_.phase(Phase::barrier);
  deps_.ranks.barrier();
  totals_.seconds += clock.total() - saving;
  return sum_epoch();
}

bool TrainingLoop::needs_sync(int64_t step) const {
  const auto asks = [step](auto* each) { return each->needs_sync(step); };
  return std::any_of(deps_.observers.begin(), deps_.observers.end(), asks) ||
         std::any_of(deps_.policies.begin(), deps_.policies.end(), asks);
}

Decision TrainingLoop::decide_after_step() {
  Decision all{.checkpoint = deps_.checkpoints != nullptr && deps_.checkpoints->is_due(monitor_.step)};
  for (Policy* each : deps_.policies) {
    const Decision one = each->after_step(monitor_.step);
    all.checkpoint = all.checkpoint || one.checkpoint;
    if (!one.stop.empty()) all.stop = one.stop;
  }
  return all;
}

void TrainingLoop::end_epoch(const record::EpochRecord& record) {
  for (Observer* each : deps_.observers) each->on_epoch_end(record, state_);
  for (Policy* each : deps_.policies) {
    const Decision decision = each->after_epoch(record, state_);
    if (!decision.stop.empty()) {
      state_.stop = true;
      state_.stopped = decision.stop;
    }
    if (decision.checkpoint && deps_.checkpoints != nullptr) deps_.checkpoints->commit(state_);
  }
}

// Completes state_.at after the steps so far.
void TrainingLoop::flush_state() {
  flush();
  if (fused_ != nullptr) fused_->flush();
  precision_.save(state_.at.numbers);
}

// In the middle of an epoch. Returns the seconds that are no time of training.
double TrainingLoop::checkpoint() {
  flush_state();
  const Stopwatch clock;
  deps_.checkpoints->after_step(state_);
  monitor_.timer.restart();
  return clock.total();
}

// Reading the first batch from a slow disk may take longer than a collective's timeout.
bool TrainingLoop::next(TensorBatch& batch) {
  if (steps_here() > 0) return deps_.train.next(batch);
  bool more = false;
  comm::with_heartbeat(deps_.ranks, "loading the first batch", [&] { more = deps_.train.next(batch); });
  return more;
}

void TrainingLoop::train_step(const TensorBatch& batch, double waited) {
  state_.at.step = ++monitor_.step;
  PendingStep step;
  step.record.epoch = state_.at.epoch + 1;
  step.record.step = monitor_.step;
  step.record.samples = batch.size;
  step.record.data = waited;
  step.step_of_epoch = ++state_.at.step_of_epoch;
  run(batch, step);
  if (!defers_) return report(step);
  flush();  // reports the step before this one: the GPU worked on it while this step was queued
  pending_ = std::move(step);
  if (needs_sync(monitor_.step)) flush();
}

void TrainingLoop::run(const TensorBatch& batch, PendingStep& step) {
  record::StepRecord& record = step.record;
  if (deps_.step.schedule) {
    set_learning_rate(deps_.optimizer, learning_rate(*deps_.step.schedule, monitor_.step));
  }
  record.lr = learning_rate_of(deps_.optimizer);
  monitor_.begin(record);
  deps_.strategy.synchronize_buffers();
  monitor_.timer.lap(record, &record::StepRecord::comm);  // for the buffers
  step.results = copy_to_host(runner_.run(batch, record));
  monitor_.timer.lap(record, &record::StepRecord::optimizer);
  deps_.strategy.after_step(monitor_.step);
  record.total = record.data + monitor_.timer.total();
  monitor_.end();
  step.marks = monitor_.timer.take();
}

// Waits until the GPU has completed the pending step, and reports it.
void TrainingLoop::flush() {
  if (!pending_) return;
  PendingStep step = std::move(*pending_);
  pending_.reset();
  monitor_.timer.read(std::move(step.marks), step.record);
  runner_.read(step.results, step.record);
  report(step);
}

void TrainingLoop::report(PendingStep& step) {
  step.record.complete();
  totals_.add(step.record);
  state_.at.totals.add(step.record);
  if (!defers_) precision_.save(state_.at.numbers);  // a rank may die in the next step; a GPU would be waited for
  for (Observer* each : deps_.observers) each->on_step_end(step.record, step.step_of_epoch, state_);
  for (Policy* each : deps_.policies) each->on_step_end(step.record, state_);
}

record::EpochRecord TrainingLoop::sum_epoch() const {
  const EpochTotals& mine = state_.at.totals;
  const auto sums = deps_.ranks.sum({mine.loss, mine.correct, static_cast<double>(mine.samples)});
  record::EpochRecord record;
  record.epoch = state_.at.epoch + 1;
  record.train_loss = sums[0] / sums[2];
  record.train_accuracy = sums[1] / sums[2];
  record.per_rank_loss = deps_.ranks.gather(std::vector{mine.mean_loss()});
  // A rank that did not train this epoch from its beginning has no loss of its own.
  const auto unknown = [](double loss) { return std::isnan(loss); };
  if (std::any_of(record.per_rank_loss.begin(), record.per_rank_loss.end(), unknown)) record.per_rank_loss.clear();
  return record;
}

record::Summary TrainingLoop::summarize() {
  const comm::Group& ranks = deps_.ranks;
  const auto samples = ranks.sum({static_cast<double>(totals_.sums.samples)});
  record::Summary summary = totals_.summary(steps_here(), samples[0]);
  static_cast<record::Metrics&>(summary) = last_epoch_;
  summary.epochs = state_.complete_epochs();
  summary.samples_per_rank = deps_.train.samples_per_rank();
  summary.stopped = state_.stopped;
  if (const auto best = state_.at.numbers.find(kBestEpoch); best != state_.at.numbers.end()) {
    summary.best_epoch = static_cast<int64_t>(best->second);
  }
  summary.world = ranks.size();
  const std::vector<int64_t> peaks = ranks.gather(std::vector<int64_t>{record::peak_memory_bytes()});
  summary.peak_memory_bytes = *std::max_element(peaks.begin(), peaks.end());
  summary.learned = deps_.model.learned();
  deps_.strategy.summarize(totals_, steps_here(), summary);
  const double comm = std::fmax(summary.split.comm, 0);  // 0 if there is none
  summary.avg_compute_time = summary.avg_batch_time - summary.avg_data_time - comm;
  return summary;
}

}  // namespace ddprun::train
