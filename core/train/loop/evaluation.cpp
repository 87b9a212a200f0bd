// Evaluations of TrainingLoop.
#include "train/loop/training_loop.hpp"

namespace ddprun::train {

void TrainingLoop::evaluate_epoch(record::EpochRecord& record) {
  if (!deps_.plan.evaluate) return;
  if (deps_.validation != nullptr) {
    const Evaluation validation = evaluate(*deps_.validation, kPlainEpoch);
    record.validation_loss = validation.loss;
    record.validation_accuracy = validation.accuracy;
  }
  if (deps_.test != nullptr) {
    const Evaluation test = evaluate();
    record.test_loss = test.loss;
    record.test_accuracy = test.accuracy;
  }
}

// `epoch`: in which the samples are fetched.
Evaluation TrainingLoop::evaluate(DataLoader& loader, int64_t epoch) {
  deps_.strategy.synchronize_buffers();
  monitor_.phase(Phase::evaluate);
  const torch::NoGradGuard no_grad;
  deps_.model.module().eval();
  loader.start(epoch);
  // Summed on the model's device in float64, and read once.
  torch::Tensor loss = torch::zeros({}, torch::TensorOptions(device_).dtype(torch::kFloat64));
  torch::Tensor right = torch::zeros_like(loss);
  int64_t samples = 0;
  TensorBatch batch;
  while (loader.next(batch)) {
    if (batch.size == 0) continue;
    const auto [output, mean_loss] = runner_.forward(batch);
    loss.add_(mean_loss, batch.size);
    const torch::Tensor correct = deps_.model.correct(output, batch.target);
    right.add_(correct.defined() ? correct : torch::full_like(right, record::kAbsent));
    samples += batch.size;
  }
  deps_.model.module().train();
  const auto sums = deps_.ranks.sum({loss.item<double>(), right.item<double>(), static_cast<double>(samples)});
  return {sums[0] / sums[2], sums[1] / sums[2], static_cast<int64_t>(sums[2])};
}

}  // namespace ddprun::train
