// The metrics that compare epochs, and EarlyStop: ends a training whose metric no longer improves.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ddprun/records.hpp"
#include "train/loop/callback.hpp"

namespace ddprun::train {

// record::metric_of() for a config key that requires the metric: throws Error(usage) that names the key if it was not
// measured.
double needed_metric(const record::EpochRecord& epoch, const std::string& metric, const std::string& key);

// Whether `value` is better than `than` by more than `by`: lower for losses, higher for accuracies. Any number is
// better than NaN; NaN is never better.
bool is_better(const std::string& metric, double value, double than, double by = 0);

struct EarlyStopRule {
  std::string metric;    // as for record::metric_of()
  int64_t patience = 3;  // epochs in a row without an improvement
  double min_delta = 0;  // an epoch improves if its metric is better than the best one by more than this
};

// Must be last in the list of callbacks, so that the others have handled the epoch before training ends.
class EarlyStop final : public Callback {
 public:
  explicit EarlyStop(EarlyStopRule rule) : rule_(std::move(rule)) {}

  void on_epoch_end(const record::EpochRecord& record, LoopState& state) override;

  // True if this epoch is the patience-th in a row without an improvement. Call it after each epoch. Its state is kept
  // in `numbers` (Position::numbers). All ranks get the same answer, because the metrics of an epoch are equal on all
  // ranks. Throws Error(usage) if the epoch has no such metric.
  bool should_stop_after(const record::EpochRecord& epoch, std::map<std::string, double>& numbers) const;

 private:
  const EarlyStopRule rule_;
};

}  // namespace ddprun::train
