// One step of LoopTrainer: from a batch to changed weights.
#include <cmath>

#include "ddprun/error.hpp"
#include "train/device/channels_last.hpp"
#include "train/optim/clip_norm.hpp"
#include "train/loop/loop_trainer.hpp"
#include "train/loop/micro_batches.hpp"
#include "train/optim/optimizers.hpp"
#include "train/loop/parity_log.hpp"

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

void LoopTrainer::run_step(const TensorBatch& batch, IssuedStep& step) {
  record::StepRecord& record = step.record;
  record.lr = set_rate();
  const bool replays = graph_ && graph_->takes(batch, steps_here() - 1);
  if (replays && !graph_->recorded()) record_graph(batch);
  under_way_ = &record;
  timer_.begin();
  synchronize_buffers();
  replays ? replay(batch, step) : compute(batch, step);
  after_step(step_);
  record.total = record.data + timer_.total();
  under_way_ = nullptr;
  step.marks = timer_.take();
  if (!late_) complete(record);
}

// Returns the learning rate of this step.
double LoopTrainer::set_rate() {
  if (parts_.step.schedule) {
    const double rate = learning_rate(*parts_.step.schedule, step_);
    set_learning_rate(parts_.optimizer, rate);
    if (rate_.defined()) rate_.fill_(rate);
  }
  return learning_rate_of(parts_.optimizer);
}

void LoopTrainer::compute(const TensorBatch& batch, IssuedStep& step) {
  timer_.lap(step.record, &record::StepRecord::comm);  // of the buffers
  step.results = copy_late(step_of(batch, step.record));
  timer_.lap(step.record, &record::StepRecord::optimizer);
}

// Returns what a GPU computes besides weights. On a CPU it is in the record.
StepResults LoopTrainer::step_of(const TensorBatch& batch, record::StepRecord& record) {
  StepResults results;
  forget_gradients(parts_.optimizer);
  if (batch.size > 0) {
    forward_backward(batch, record, results);
  } else {
    skip_backward();
  }
  timer_.skip();
  finish_gradients();
  timer_.lap(record, &record::StepRecord::comm);
  parts_.observer.phase(Phase::optimizer, step_, -1);
  update_weights(record, results);
  return results;
}

void LoopTrainer::end_of(double record::StepRecord::*part) {
  if (under_way_ == nullptr) return;
  double& seconds = under_way_->*part;
  if (std::isnan(seconds)) seconds = 0;
  timer_.lap(*under_way_, part);
}

void LoopTrainer::forward_backward(const TensorBatch& batch, record::StepRecord& record, StepResults& results) {
  const std::vector<TensorBatch> parts = micro_batches(batch, parts_.step.accumulate);
  for (const TensorBatch& part : parts) {
    begin_micro_batch(&part == &parts.back());
    run_micro_batch(part, static_cast<double>(part.size) / static_cast<double>(batch.size), record, results);
  }
}

LoopTrainer::Outcome LoopTrainer::outcome_of(const TensorBatch& batch) {
  const Autocast autocast(parts_.step.amp, device_.type());
  const torch::Tensor output = forward(parts_.step.channels_last ? with_channels_last(batch.input) : batch.input);
  return {output, parts_.model.loss(output, batch.target)};
}

// share: of the rank's samples in this step.
void LoopTrainer::run_micro_batch(const TensorBatch& batch, double share, record::StepRecord& record,
                                  StepResults& results) {
  timer_.skip();
  parts_.observer.phase(Phase::forward, step_, -1);
  const auto [output, loss] = outcome_of(batch);
  const torch::Tensor correct = parts_.model.correct(output.detach(), batch.target);
  if (late_) {
    results.parts.push_back({loss.detach(), correct, share});
  } else {
    add_result(loss, correct, share, record);
  }
  timer_.lap(record, &record::StepRecord::forward);

  parts_.observer.phase(Phase::backward, step_, -1);
  backward(scaled(loss, batch.weight));
  timer_.lap(record, &record::StepRecord::backward);
}

torch::Tensor LoopTrainer::scaled(const torch::Tensor& loss, double weight) const {
  const torch::Tensor large = scaler_ ? loss * scaler_->scale() : loss;
  return weight == 1 ? large : large * weight;
}

void LoopTrainer::update_weights(record::StepRecord& record, StepResults& results) {
  if (scaler_ && !unscale_gradients(record, results)) return;
  if (parts_.step.clip_norm > 0) clip_norm(gradients_of(parts_.optimizer), parts_.step.clip_norm);
  const bool log_parity = parts_.parity != nullptr && parts_.parity->wanted();
  if (log_parity) parts_.parity->note_gradients();
  parts_.optimizer.step();
  if (log_parity) parts_.parity->write(step_);
}

// Returns whether the optimizer is to be called. All ranks agree: where one stepped and another did not, the replicas
// would part.
bool LoopTrainer::unscale_gradients(record::StepRecord& record, StepResults& results) {
  if (fused_ != nullptr) {
    // Reduced gradients are the same bits on all ranks, and so is what each GPU finds in them.
    results.scale = scaler_->scale().clone();
    results.overflow = scaler_->unscale(gradients_of(parts_.optimizer));
    fused_->skip_where(results.overflow);
    scaler_->update(results.overflow);
    return true;
  }
  record.scale = scaler_->scale().item<float>();
  torch::Tensor overflow = scaler_->unscale(gradients_of(parts_.optimizer));
  const bool any = sum({overflow.item<float>()})[0] > 0;
  scaler_->update(overflow.fill_(any ? 1 : 0));
  record.skipped = any ? 1 : 0;
  return !any;
}

// Waits for the GPU to have made the step.
void LoopTrainer::read_late(IssuedStep& step) {
  record::StepRecord& record = step.record;
  if (is_replayed(record)) wait_for_replay(step);
  timer_.read(std::move(step.marks), record);
  complete(record);
  const StepResults& results = step.results;
  if (results.overflow.defined()) {
    record.scale = results.scale.item<float>();
    record.skipped = results.overflow.item<float>() > 0 ? 1 : 0;
  }
  for (const auto& [loss, correct, share] : results.parts) add_result(loss, correct, share, record);
}

void LoopTrainer::add_result(const torch::Tensor& loss, const torch::Tensor& correct, double share,
                             record::StepRecord& record) {
  const auto value = loss.item<double>();
  if (!std::isfinite(value)) {
    throw_if_failed();  // of gradients that never came: the peer that was lost is the cause, not the loss
    if (late_) parts_.observer.phase(Phase::forward, record.step, -1);  // the next step is under way
    throw Error(ExitCode::failure, std::string("the loss is ") + (std::isnan(value) ? "nan" : "infinite") +
                                       "; a smaller optimizer.lr usually helps");
  }
  record.loss = (std::isnan(record.loss) ? 0 : record.loss) + value * share;
  if (correct.defined()) record.correct = (std::isnan(record.correct) ? 0 : record.correct) + correct.item<double>();
}

// For a commit. Waits for the GPU.
void LoopTrainer::keep_device_state() {
  if (fused_ != nullptr) fused_->settle();
  if (!scaler_) return;
  const ScalerState state = scaler_->state();
  at_.numbers[kScale] = state.scale;
  at_.numbers[kGrowthTracker] = static_cast<double>(state.growth_tracker);
}

void LoopTrainer::restore_scaler() {
  const auto scale = at_.numbers.find(kScale), tracker = at_.numbers.find(kGrowthTracker);
  if (scale == at_.numbers.end() || tracker == at_.numbers.end()) return;
  scaler_.emplace(device_, ScalerState{scale->second, static_cast<int64_t>(tracker->second)});
}

}  // namespace ddprun::train
