#include "record/recorder.hpp"

#include <cmath>

namespace ddprun::record {
namespace {

// Absent values stay absent.
void add_known(double& sum, double value) {
  if (!std::isnan(value)) sum = (std::isnan(sum) ? 0 : sum) + value;
}

}  // namespace

void RunTotals::add(const StepRecord& step) {
  sums.samples += step.samples;
  sums.data += step.data;
  add_known(sums.forward, step.forward);
  add_known(sums.backward, step.backward);
  add_known(sums.comm, step.comm);
  add_known(sums.optimizer, step.optimizer);
  sums.total += step.total;
  add_known(sums.scatter, step.scatter);
  add_known(sums.replicate, step.replicate);
  add_known(sums.gather, step.gather);
  add_known(sums.reduce, step.reduce);
}

Summary RunTotals::summary(int64_t steps, double samples) const {
  const auto count = static_cast<double>(steps);
  Summary summary;
  summary.steps = steps;
  summary.total_time = seconds;
  summary.throughput = samples / seconds;
  summary.avg_batch_time = sums.total / count;
  summary.avg_data_time = sums.data / count;
  summary.split = {sums.forward / count,   sums.backward / count, kAbsent,
                   sums.optimizer / count, sums.scatter / count,  sums.replicate / count,
                   sums.gather / count,    sums.reduce / count};
  return summary;
}

}  // namespace ddprun::record
