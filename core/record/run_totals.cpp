#include "record/recorder.hpp"

#include <cmath>

namespace ddprun::record {

void RunTotals::add(const StepRecord& step) {
  sums.samples += step.samples;
  using Step = StepRecord;
  for (double Step::*part : {&Step::data, &Step::forward, &Step::backward, &Step::comm, &Step::optimizer, &Step::total,
                             &Step::scatter, &Step::replicate, &Step::gather, &Step::reduce}) {
    if (std::isnan(step.*part)) continue;  // absent values stay absent
    sums.*part = (std::isnan(sums.*part) ? 0 : sums.*part) + step.*part;
  }
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
