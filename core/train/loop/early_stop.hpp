// EarlyStop: ends a training that no longer improves.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "train/loop/callback.hpp"

namespace ddprun::train {

struct EarlyStopRule {
  std::string metric;    // as in metric.hpp
  int64_t patience = 3;  // epochs in a row without an improvement
  double min_delta = 0;  // an epoch improves when its metric is better than the best by more than this
};

// Last in the list of callbacks: what the others do after an epoch comes before the end.
class EarlyStop final : public Callback {
 public:
  explicit EarlyStop(EarlyStopRule rule) : rule_(std::move(rule)) {}

  void on_epoch_end(const record::EpochRecord& record, LoopState& state) override;

  // Whether this epoch is the patience-th in a row that did not improve. To be called after each epoch; `numbers`
  // (those of Position) keeps what it has to remember. The answer is equal on all ranks, as the epoch's figures are.
  // Throws Error(usage) where the epoch has no such metric.
  bool should_stop_after(const record::EpochRecord& epoch, std::map<std::string, double>& numbers) const;

 private:
  const EarlyStopRule rule_;
};

}  // namespace ddprun::train
