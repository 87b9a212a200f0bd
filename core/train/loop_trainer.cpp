#include "train/loop_trainer.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "record/environment.hpp"
#include "train/measure.hpp"
#include "train/micro_batches.hpp"
#include "train/optimizers.hpp"

namespace ddprun::train {
namespace {

using launch::Phase;

// The most of any rank.
double most(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

// Optimizer::zero_grad detaches in place, which a view, such as a gradient in a bucket, does not allow.
void forget_gradients(torch::optim::Optimizer& optimizer) {
  for (torch::Tensor& parameter : parameters_of(optimizer)) parameter.mutable_grad().reset();
}

}  // namespace

record::Summary LoopTrainer::fit() {
  parts_.observer.phase(Phase::setup, 0, -1);
  prepare();
  if (parts_.checkpointer != nullptr) at_ = parts_.checkpointer->restore();
  step_ = first_step_ = at_.step;
  int64_t epochs = at_.epoch;
  while (!finished(epochs)) {
    const Stopwatch clock;
    record::EpochRecord record = train_epoch(++epochs);
    // Before the evaluation, so that whoever interrupts it loses nothing.
    const bool due = parts_.plan.checkpoint_every > 0 && epochs % parts_.plan.checkpoint_every == 0;
    if (due || finished(epochs)) commit();
    if (!interrupted_) judge_epoch(record, clock);
    last_epoch_ = record;
  }
  return summarize();
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
  while (!stopping_) {
    parts_.observer.phase(Phase::data, step_ + 1, -1);
    Stopwatch wait;
    if (!parts_.train.next(batch)) break;
    ++step_;
    record::StepRecord record;
    record.epoch = epoch;
    record.step = step_;
    record.samples = batch.size;
    record.data = wait.lap();
    record = run_step(batch, record);
    at_.totals.add(record);
    ++at_.step_of_epoch;
    faults_.warm(steps_here());
    parts_.observer.step(record, at_.step_of_epoch, parts_.train.steps());
    interrupted_ = parts_.observer.stop_after(step_);
    stopping_ = interrupted_ || (parts_.plan.steps && step_ >= *parts_.plan.steps);
  }
  faults_.stop(steps_here());
  parts_.observer.phase(Phase::barrier, step_, -1);
  barrier();
  totals_.seconds += clock.total();
  return sum_epoch();
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
  if (!parts_.plan.best.empty()) keep_best(record);
}

void LoopTrainer::keep_best(const record::EpochRecord& record) {
  const std::string& measure = parts_.plan.best;
  const double value = measure_of(record, measure);
  if (std::isnan(value)) {
    throw Error(ExitCode::usage, "checkpoint.best = \"" + measure +
                                     "\": this model has no such measure; use \"test.loss\" or \"train.loss\"");
  }
  const auto best = at_.numbers.find(kBestValue);
  if (best != at_.numbers.end() && !is_better(measure, value, best->second)) return;
  at_.numbers[kBestValue] = value;
  at_.numbers[kBestEpoch] = static_cast<double>(record.epoch);
  if (parts_.checkpointer != nullptr && rank() == 0) parts_.checkpointer->save_best(step_, record.epoch, value);
}

record::StepRecord LoopTrainer::run_step(const TensorBatch& batch, record::StepRecord record) {
  Stopwatch clock;
  if (parts_.step.schedule) set_learning_rate(parts_.optimizer, learning_rate(*parts_.step.schedule, step_));
  record.lr = learning_rate_of(parts_.optimizer);
  forget_gradients(parts_.optimizer);
  synchronize_buffers();
  record.comm = clock.lap();
  if (batch.size > 0) {
    forward_backward(batch, record);
  } else {
    skip_backward();
  }
  clock.lap();
  finish_gradients();
  record.comm += clock.lap();
  parts_.observer.phase(Phase::optimizer, step_, -1);
  update_weights();
  record.optimizer = clock.lap();
  after_step(step_);
  record.total = record.data + clock.total();
  complete(record);

  totals_.add(record);
  return record;
}

void LoopTrainer::update_weights() {
  if (parts_.step.clip_norm > 0) {
    torch::nn::utils::clip_grad_norm_(parameters_of(parts_.optimizer), parts_.step.clip_norm);
  }
  parts_.optimizer.step();
}

void LoopTrainer::forward_backward(const TensorBatch& batch, record::StepRecord& record) {
  record.loss = 0;
  const std::vector<TensorBatch> parts = micro_batches(batch, parts_.step.accumulate);
  for (const TensorBatch& part : parts) {
    begin_micro_batch(&part == &parts.back());
    run_micro_batch(part, static_cast<double>(part.size) / static_cast<double>(batch.size), record);
  }
}

// share: of the rank's samples in this step.
void LoopTrainer::run_micro_batch(const TensorBatch& batch, double share, record::StepRecord& record) {
  Stopwatch clock;
  parts_.observer.phase(Phase::forward, step_, -1);
  const torch::Tensor output = forward(batch.input);
  const torch::Tensor loss = parts_.model.loss(output, batch.target);
  const auto value = loss.item<double>();
  if (!std::isfinite(value)) {
    throw Error(ExitCode::failure, std::string("the loss is ") + (std::isnan(value) ? "nan" : "infinite") +
                                       "; a smaller optimizer.lr usually helps");
  }
  const torch::Tensor correct = parts_.model.correct(output.detach(), batch.target);
  record.loss += value * share;
  if (correct.defined()) record.correct = (std::isnan(record.correct) ? 0 : record.correct) + correct.item<double>();
  record.forward += clock.lap();

  parts_.observer.phase(Phase::backward, step_, -1);
  backward(batch.weight == 1 ? loss : loss * batch.weight);
  record.backward += clock.lap();
}

Evaluation LoopTrainer::evaluate() {
  synchronize_buffers();
  parts_.observer.phase(Phase::evaluate, step_, -1);
  const torch::NoGradGuard no_grad;
  parts_.model.module().eval();
  Feed& feed = *parts_.test;
  feed.start(0);
  double loss = 0, right = 0;
  int64_t samples = 0;
  TensorBatch batch;
  while (feed.next(batch)) {
    if (batch.size == 0) continue;
    const torch::Tensor output = forward(batch.input);
    loss += parts_.model.loss(output, batch.target).item<double>() * static_cast<double>(batch.size);
    const torch::Tensor correct = parts_.model.correct(output, batch.target);
    right += correct.defined() ? correct.item<double>() : record::kAbsent;
    samples += batch.size;
  }
  parts_.model.module().train();
  const auto sums = sum({loss, right, static_cast<double>(samples)});
  return {sums[0] / sums[2], sums[1] / sums[2], static_cast<int64_t>(sums[2])};
}

void LoopTrainer::commit() {
  parts_.observer.phase(Phase::checkpoint, step_, -1);
  at_.step = step_;
  if (parts_.checkpointer != nullptr) parts_.checkpointer->save_state(at_);
  barrier();
  if (parts_.checkpointer != nullptr && rank() == 0) parts_.checkpointer->save(step_, complete_epochs());
  barrier();
}

record::Summary LoopTrainer::summarize() {
  const auto samples = sum({static_cast<double>(totals_.sums.samples)});
  record::Summary summary = totals_.summary(steps_here(), samples[0]);
  summary.test_accuracy = last_epoch_.test_accuracy;
  summary.test_loss = last_epoch_.test_loss;
  summary.train_loss = last_epoch_.train_loss;
  if (const comm::Served* by = served()) {
    summary.split.comm = totals_.sums.comm / static_cast<double>(steps_here());
    summary.algorithm = by->algorithm;
    summary.transport = by->transport;
  }
  summary.epochs = complete_epochs();
  if (interrupted_) summary.stopped = "interrupted";
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
