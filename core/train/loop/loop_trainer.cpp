#include "train/loop/loop_trainer.hpp"

#include <algorithm>
#include <cmath>

#include "ddprun/error.hpp"
#include "data/batch_weights.hpp"
#include "record/environment.hpp"
#include "train/loop/metric.hpp"

namespace ddprun::train {
namespace {

using launch::Phase;

// The most of any rank.
double most(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

torch::Device device_of(const torch::nn::Module& module) {
  const auto parameters = module.parameters();
  return parameters.empty() ? torch::Device(torch::kCPU) : parameters.front().device();
}

FusedOptimizer* fused(const Parts& parts, bool late) {
  const bool needed = parts.graph != nullptr || (late && parts.step.amp == Amp::fp16);
  return needed ? dynamic_cast<FusedOptimizer*>(&parts.optimizer) : nullptr;
}

}  // namespace

LoopTrainer::LoopTrainer(Parts parts)
    : parts_(parts), device_(device_of(parts.model.module())), late_(!device_.is_cpu()), fused_(fused(parts, late_)) {
  if (parts_.step.amp == Amp::fp16) scaler_.emplace(device_);
  if (parts_.graph != nullptr) use_graph(*parts_.graph);
}

record::Summary LoopTrainer::fit() {
  parts_.observer.phase(Phase::setup, 0, -1);
  prepare();
  restore();
  int64_t epochs = at_.epoch;
  while (!finished(epochs)) {
    const Stopwatch clock;
    record::EpochRecord record = train_epoch(++epochs);
    // Before the evaluation, so that whoever interrupts it loses nothing.
    const bool due = parts_.plan.checkpoint_every > 0 && epochs % parts_.plan.checkpoint_every == 0;
    const bool committed = due || finished(epochs);
    if (committed) commit();
    if (!interrupted_) judge_epoch(record, clock);
    if (given_up_ && !committed) commit();
    last_epoch_ = record;
  }
  return summarize();
}

void LoopTrainer::restore() {
  if (parts_.checkpointer != nullptr) {
    alone("reading the checkpoint", [this] { at_ = parts_.checkpointer->restore(); });
    parts_.checkpointer->restore_together();
  }
  if (scaler_) restore_scaler();
  step_ = first_step_ = at_.step;
  use_batch_weights();
}

bool LoopTrainer::finished(int64_t epochs_done) const {
  return stopping_ || (parts_.plan.epochs && epochs_done >= *parts_.plan.epochs);
}

record::EpochRecord LoopTrainer::train_epoch(int64_t epoch) {
  // Only the first epoch of a run that goes on is under way already.
  if (at_.epoch != epoch - 1) at_ = {step_, epoch - 1, 0, {}, at_.numbers};
  TensorBatch batch;
  parts_.model.module().train();
  barrier();
  const Stopwatch clock;
  parts_.train.start(at_.epoch, at_.step_of_epoch);
  faults_.start(steps_here());
  timer_.restart();
  while (!stopping_) {
    if (late_ && parts_.observer.at_once(step_ + 1)) settle_last();
    parts_.observer.phase(Phase::data, step_ + 1, -1);
    Stopwatch wait;
    if (!next(batch)) break;
    ++step_;
    IssuedStep step;
    step.record.epoch = epoch;
    step.record.step = step_;
    step.record.samples = batch.size;
    step.record.data = wait.lap();
    step.step_of_epoch = ++at_.step_of_epoch;
    run_step(batch, step);
    faults_.warm(steps_here());
    settle(std::move(step));
    interrupted_ = parts_.observer.stop_after(step_);
    stopping_ = interrupted_ || (parts_.plan.steps && step_ >= *parts_.plan.steps);
  }
  settle_last();
  keep_device_state();
  faults_.stop(steps_here());
  parts_.observer.phase(Phase::barrier, step_, -1);
  barrier();
  totals_.seconds += clock.total();
  return sum_epoch();
}

// The first batch of a run may have to be read from a cold disk.
bool LoopTrainer::next(TensorBatch& batch) {
  if (step_ > first_step_) return parts_.train.next(batch);
  bool more = false;
  alone("loading the first batch", [&] { more = parts_.train.next(batch); });
  return more;
}

// On a GPU, the step before this one is told: it has had as long as this one took to be issued.
void LoopTrainer::settle(IssuedStep step) {
  if (!late_) return tell(std::move(step));
  settle_last();
  issued_ = std::move(step);
  if (parts_.observer.at_once(step_)) settle_last();
}

void LoopTrainer::settle_last() {
  if (!issued_) return;
  IssuedStep step = std::move(*issued_);
  issued_.reset();
  read_late(step);
  tell(std::move(step));
}

void LoopTrainer::tell(IssuedStep step) {
  totals_.add(step.record);
  at_.totals.add(step.record);
  balance(step.record);
  parts_.observer.step(step.record, step.step_of_epoch, parts_.train.steps());
}

record::EpochRecord LoopTrainer::sum_epoch() {
  const EpochTotals& mine = at_.totals;
  const auto sums = sum({mine.loss, mine.correct, static_cast<double>(mine.samples)});
  record::EpochRecord record;
  record.epoch = at_.epoch + 1;
  record.train_loss = sums[0] / sums[2];
  record.train_accuracy = sums[1] / sums[2];
  record.per_rank_loss = gather(mine.mean_loss());
  // An epoch that other ranks trained has no losses of these.
  const auto unknown = [](double loss) { return std::isnan(loss); };
  if (std::any_of(record.per_rank_loss.begin(), record.per_rank_loss.end(), unknown)) record.per_rank_loss.clear();
  return record;
}

void LoopTrainer::judge_epoch(record::EpochRecord& record, const Stopwatch& clock) {
  if (parts_.plan.evaluate) {
    const Evaluation test = evaluate();
    record.test_loss = test.loss;
    record.test_accuracy = test.accuracy;
  }
  record.seconds = clock.total();
  parts_.observer.epoch(record);
  if (!parts_.plan.best.empty()) alone("saving the best weights", of_rank0([&] { keep_best(record); }));
  if (!finished(record.epoch)) given_up_ = stopping_ = gives_up(parts_.plan.early_stop, record, at_.numbers);
}

// Once the ranks' speeds are known, each gets its part of the work, from the next step of this epoch on.
void LoopTrainer::balance(const record::StepRecord& record) {
  if (world() == 1 || at_.numbers.contains(share_name(0))) return;
  speed_.add(record);
  if (!speed_.due()) return;
  const std::vector<double> speeds = gather(speed_.speed());
  for (int rank = 0; rank < world(); ++rank) at_.numbers[share_name(rank)] = speeds[static_cast<std::size_t>(rank)];
  use_batch_weights();
  parts_.train.start(at_.epoch, at_.step_of_epoch);
}

// Those that were measured, in this run or in the one that it goes on from.
void LoopTrainer::use_batch_weights() {
  if (parts_.plan.balance_steps == 0 || !at_.numbers.contains(share_name(0))) return;
  std::vector<double> shares;
  for (int rank = 0; rank < world(); ++rank) shares.push_back(at_.numbers.at(share_name(rank)));
  parts_.train.set_batch_weights(shares);
  parts_.observer.shares(data::apportion(parts_.train.batch_size() * world(), shares));
}

void LoopTrainer::keep_best(const record::EpochRecord& record) {
  const std::string& measure = parts_.plan.best;
  const double value = needed_metric(record, measure, "checkpoint.best");
  const auto best = at_.numbers.find(kBestValue);
  if (best != at_.numbers.end() && !is_better(measure, value, best->second)) return;
  at_.numbers[kBestValue] = value;
  at_.numbers[kBestEpoch] = static_cast<double>(record.epoch);
  if (parts_.checkpointer == nullptr) return;
  parts_.observer.phase(Phase::checkpoint, step_, -1);
  parts_.checkpointer->save_best(step_, record.epoch, value);
}

Evaluation LoopTrainer::evaluate() {
  synchronize_buffers();
  parts_.observer.phase(Phase::evaluate, step_, -1);
  const torch::NoGradGuard no_grad;
  parts_.model.module().eval();
  DataLoader& loader = *parts_.test;
  loader.start(0);
  // Summed where the model computes, in float64, and read once.
  torch::Tensor loss = torch::zeros({}, torch::TensorOptions(device_).dtype(torch::kFloat64));
  torch::Tensor right = torch::zeros_like(loss);
  int64_t samples = 0;
  TensorBatch batch;
  while (loader.next(batch)) {
    if (batch.size == 0) continue;
    const auto [output, mean_loss] = outcome_of(batch);
    loss.add_(mean_loss, batch.size);
    const torch::Tensor correct = parts_.model.correct(output, batch.target);
    right.add_(correct.defined() ? correct : torch::full_like(right, record::kAbsent));
    samples += batch.size;
  }
  parts_.model.module().train();
  const auto sums = sum({loss.item<double>(), right.item<double>(), static_cast<double>(samples)});
  return {sums[0] / sums[2], sums[1] / sums[2], static_cast<int64_t>(sums[2])};
}

void LoopTrainer::commit() {
  parts_.observer.phase(Phase::checkpoint, step_, -1);
  at_.step = step_;
  if (parts_.checkpointer == nullptr) return;
  const std::string doing = "saving a checkpoint";
  alone(doing, [this] { parts_.checkpointer->save_state(at_); });
  alone(doing, of_rank0([this] { parts_.checkpointer->save(step_, complete_epochs()); }));
}

record::Summary LoopTrainer::summarize() {
  const auto samples = sum({static_cast<double>(totals_.sums.samples)});
  record::Summary summary = totals_.summary(steps_here(), samples[0]);
  summary.test_accuracy = last_epoch_.test_accuracy;
  summary.test_loss = last_epoch_.test_loss;
  summary.train_loss = last_epoch_.train_loss;
  if (const comm::Execution* by = served()) {
    summary.split.comm = totals_.sums.comm / static_cast<double>(steps_here());
    summary.algorithm = by->algorithm;
    summary.transport = by->transport;
  }
  summary.epochs = complete_epochs();
  if (const auto& shares = parts_.train.shares(); !shares.empty()) {
    summary.shares = data::apportion(parts_.train.batch_size() * world(), shares);
  }
  if (interrupted_) summary.stopped = "interrupted";
  if (given_up_) summary.stopped = "early_stop";
  if (const auto best = at_.numbers.find(kBestEpoch); best != at_.numbers.end()) {
    summary.best_epoch = static_cast<int64_t>(best->second);
  }
  summary.world = world();
  summary.peak_memory_bytes = static_cast<int64_t>(most(gather(static_cast<double>(record::peak_memory_bytes()))));
  summary.page_faults = most(gather(faults_.per_step()));
  summary.learned = parts_.model.learned();
  complete(summary);
  return summary;
}

}  // namespace ddprun::train
