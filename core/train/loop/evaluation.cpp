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
  // Loss, correct samples, samples: summed for each virtual rank on the model's device in float64, and read once.
  const int64_t rows = loader.most_parts(deps_.ranks.size());
  const torch::Tensor totals = torch::zeros({rows, 3}, torch::TensorOptions(device_).dtype(torch::kFloat64));
  const auto run = [&] {
    TensorBatch batch;
    while (loader.next(batch)) {
      const std::vector<TensorBatch> parts = parts_of(batch);
      deps_.strategy.in_parts(static_cast<int>(parts.size()), [&](int row) {
        const TensorBatch& part = parts[static_cast<std::size_t>(row)];
        if (part.size == 0) return;
        const torch::Tensor of_row = totals[row];
        const auto [output, mean_loss] = runner_.forward(part);
        of_row[0].add_(mean_loss, part.size);
        const torch::Tensor correct = deps_.model.correct(output, part.target);
        of_row[1].add_(correct.defined() ? correct : torch::full_like(of_row[1], record::kAbsent));
        of_row[2].add_(part.size);
      });
    }
  };
  // A rank with fewer virtual ranks than others would wait for them longer than a collective may take.
  rows > 1 ? comm::with_heartbeat(deps_.ranks, "evaluating", run) : run();
  deps_.model.module().train();
  const torch::Tensor read = totals.cpu();
  const auto* const values = read.data_ptr<double>();
  const auto sums = deps_.ranks.sum({values, values + read.numel()}, static_cast<std::size_t>(rows));
  return {sums[0] / sums[2], sums[1] / sums[2], static_cast<int64_t>(sums[2])};
}

}  // namespace ddprun::train
