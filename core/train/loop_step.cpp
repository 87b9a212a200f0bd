// One step of LoopTrainer: from a batch to changed weights.
#include <cmath>

#include "base/error.hpp"
#include "train/loop_trainer.hpp"
#include "train/micro_batches.hpp"
#include "train/optimizers.hpp"
#include "train/parity_log.hpp"

namespace ddprun::train {
namespace {

using launch::Phase;

// Names in Position::numbers.
const std::string kScale = "fp16.scale", kGrowthTracker = "fp16.growth_tracker";

// Optimizer::zero_grad detaches in place, which a view, such as a gradient in a bucket, does not allow.
void forget_gradients(torch::optim::Optimizer& optimizer) {
  for (torch::Tensor& parameter : parameters_of(optimizer)) parameter.mutable_grad().reset();
}

}  // namespace

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
  update_weights(record);
  record.optimizer = clock.lap();
  after_step(step_);
  record.total = record.data + clock.total();
  complete(record);

  totals_.add(record);
  return record;
}

void LoopTrainer::update_weights(record::StepRecord& record) {
  if (scaler_ && !unscale_gradients(record)) return;
  if (parts_.step.clip_norm > 0) {
    torch::nn::utils::clip_grad_norm_(parameters_of(parts_.optimizer), parts_.step.clip_norm);
  }
  const bool log_parity = parts_.parity != nullptr && parts_.parity->wanted();
  if (log_parity) parts_.parity->note_gradients();
  parts_.optimizer.step();
  if (log_parity) parts_.parity->write(step_);
}

// Returns whether the gradients are finite. All ranks agree: where one stepped and another did not, the replicas would
// part.
bool LoopTrainer::unscale_gradients(record::StepRecord& record) {
  record.scale = scaler_->scale();
  const bool finite = scaler_->unscale(gradients_of(parts_.optimizer));
  const bool overflow = sum({finite ? 0.0 : 1.0})[0] > 0;
  scaler_->update(overflow);
  at_.numbers[kScale] = scaler_->state().scale;
  at_.numbers[kGrowthTracker] = static_cast<double>(scaler_->state().growth_tracker);
  record.skipped = overflow ? 1 : 0;
  return !overflow;
}

void LoopTrainer::forward_backward(const TensorBatch& batch, record::StepRecord& record) {
  record.loss = 0;
  const std::vector<TensorBatch> parts = micro_batches(batch, parts_.step.accumulate);
  for (const TensorBatch& part : parts) {
    begin_micro_batch(&part == &parts.back());
    run_micro_batch(part, static_cast<double>(part.size) / static_cast<double>(batch.size), record);
  }
}

LoopTrainer::Outcome LoopTrainer::outcome_of(const TensorBatch& batch) {
  const Autocast autocast(parts_.step.amp);
  const torch::Tensor output = forward(batch.input);
  return {output, parts_.model.loss(output, batch.target)};
}

// share: of the rank's samples in this step.
void LoopTrainer::run_micro_batch(const TensorBatch& batch, double share, record::StepRecord& record) {
  Stopwatch clock;
  parts_.observer.phase(Phase::forward, step_, -1);
  const auto [output, loss] = outcome_of(batch);
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
  const double factor = batch.weight * (scaler_ ? scaler_->scale() : 1);
  backward(factor == 1 ? loss : loss * factor);
  record.backward += clock.lap();
}

void LoopTrainer::restore_scaler() {
  const auto scale = at_.numbers.find(kScale), tracker = at_.numbers.find(kGrowthTracker);
  if (scale == at_.numbers.end() || tracker == at_.numbers.end()) return;
  scaler_.emplace(ScalerState{scale->second, static_cast<int64_t>(tracker->second)});
}

}  // namespace ddprun::train
