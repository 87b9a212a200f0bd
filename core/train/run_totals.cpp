#include "train/run_totals.hpp"

namespace ddprun::train {

void RunTotals::add(const record::StepRecord& step) {
  sums.samples += step.samples;
  sums.data += step.data;
  sums.forward += step.forward;
  sums.backward += step.backward;
  sums.comm += step.comm;
  sums.optimizer += step.optimizer;
  sums.total += step.total;
}

record::Summary RunTotals::summary(int64_t steps, double samples) const {
  const auto count = static_cast<double>(steps);
  record::Summary summary;
  summary.steps = steps;
  summary.total_time = seconds;
  summary.throughput = samples / seconds;
  summary.avg_batch_time = sums.total / count;
  summary.avg_data_time = sums.data / count;
  summary.avg_compute_time = (sums.total - sums.data) / count;
  summary.split = {sums.forward / count, sums.backward / count, record::kAbsent, sums.optimizer / count};
  return summary;
}

}  // namespace ddprun::train
