#include "train/loop/step_runner.hpp"

#include <algorithm>
#include <cmath>

#include "ddprun/error.hpp"
#include "train/optim/optimizers.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::train {
namespace {

void add_to(double& sum, double value) {
  sum = (std::isnan(sum) ? 0 : sum) + value;
}

}  // namespace

StepResults StepRunner::run(const TensorBatch& batch, record::StepRecord& record) {
  StepResults results;
  deps_.optimizer.zero_grad();
  const std::vector<TensorBatch> parts = parts_of(batch);
  const auto count = static_cast<int>(parts.size());
  deps_.strategy.in_parts(count, [&, before = record](int part) {
    if (part == 0) {  // maybe again
      record = before;
      results.parts.clear();
    }
    run_part(parts[static_cast<std::size_t>(part)], part + 1 == count, static_cast<double>(batch.size), record,
             results);
  });
  monitor_.timer.skip();
  deps_.strategy.finish_gradients();
  monitor_.timer.lap(record, &record::StepRecord::comm);
  monitor_.phase(Phase::optimizer);
  update_weights(record, results);
  return results;
}

void StepRunner::run_part(const TensorBatch& part, bool is_last, double step_samples, record::StepRecord& record,
                          StepResults& results) {
  if (part.size == 0) return deps_.strategy.skip_backward();
  const std::vector<TensorBatch> micros = micro_batches(part, deps_.step.accumulate);
  for (const TensorBatch& micro : micros) {
    deps_.strategy.begin_micro_batch(is_last && &micro == &micros.back());
    run_micro_batch(micro, static_cast<double>(micro.size) / step_samples, record, results);
  }
}

Outcome StepRunner::forward(const TensorBatch& batch) {
  const Autocast autocast = precision_.autocast();
  const torch::Tensor output =
      deps_.strategy.forward(deps_.step.channels_last ? with_channels_last(batch.input) : batch.input);
  return {output, deps_.model.loss(output, batch.target)};
}

void StepRunner::run_micro_batch(const TensorBatch& batch, double fraction, record::StepRecord& record,
                                 StepResults& results) {
  monitor_.timer.skip();
  monitor_.phase(Phase::forward);
  const auto [output, loss] = forward(batch);
  const MicroResult result{deferred_ ? loss.detach() : loss, deps_.model.correct(output.detach(), batch.target),
                           fraction};
  if (deferred_) {
    results.parts.push_back(result);
  } else {
    add_result(result, record);
  }
  monitor_.timer.lap(record, &record::StepRecord::forward);

  monitor_.phase(Phase::backward);
  deps_.strategy.backward(precision_.scaled(loss, batch.weight));
  monitor_.timer.lap(record, &record::StepRecord::backward);
}

void StepRunner::update_weights(record::StepRecord& record, StepResults& results) {
  if (precision_.scales() &&
      !precision_.unscale(gradients_of(deps_.optimizer), deps_.ranks, record, results.scale, results.overflow)) {
    return;
  }
  const bool skips = std::any_of(deps_.policies.begin(), deps_.policies.end(),
                                 [this](Policy* each) { return each->skips_step(monitor_.step); });
  if (skips) {
    record.skipped = 1;
    return;
  }
  if (deps_.step.clip_norm > 0) clip_norm(gradients_of(deps_.optimizer), deps_.step.clip_norm);
  for (Observer* each : deps_.observers) each->before_optimizer_step(monitor_.step);
  deps_.optimizer.step();
  for (Observer* each : deps_.observers) each->after_optimizer_step(monitor_.step);
}

void StepRunner::read(const StepResults& results, record::StepRecord& record) {
  if (results.overflow.defined()) {
    record.scale = results.scale.item<float>();
    record.skipped = results.overflow.item<float>() > 0 ? 1 : 0;
  }
  for (const MicroResult& part : results.parts) add_result(part, record);
}

void StepRunner::add_result(const MicroResult& result, record::StepRecord& record) {
  const auto value = result.loss.item<double>();
  if (!std::isfinite(value)) {
    deps_.ranks.check();  // if a peer was lost, its gradients are missing, and that error comes first
    if (deferred_) monitor_.phase_of(record.step, Phase::forward);  // the next step is already running
    throw Error(ExitCode::failure, std::string("the loss is ") + (std::isnan(value) ? "nan" : "infinite") +
                                       "; a smaller optimizer.lr usually helps");
  }
  add_to(record.loss, value * result.fraction);
  if (result.correct.defined()) add_to(record.correct, result.correct.item<double>());
}

}  // namespace ddprun::train
