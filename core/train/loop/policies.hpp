// EarlyStop, GradientCheck and LoadBalance. And the metrics that compare epochs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ddprun/records.hpp"
#include "train/loop/policy.hpp"
#include "train/tensor/parameters.hpp"

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

// Ends the training with a checkpoint.
class EarlyStop final : public Policy {
 public:
  explicit EarlyStop(EarlyStopRule rule) : rule_(std::move(rule)) {}

  Decision after_epoch(const record::EpochRecord& record, LoopState& state) override;

  // True if this epoch is the patience-th in a row without an improvement. Call it after each epoch. Its state is kept
  // in `numbers` (Position::numbers). All ranks get the same answer, because the metrics of an epoch are equal on all
  // ranks. Throws Error(usage) if the epoch has no such metric.
  bool should_stop_after(const record::EpochRecord& epoch, std::map<std::string, double>& numbers) const;

 private:
  const EarlyStopRule rule_;
};

// Finds gradients that are NaN or infinite before the optimizer uses them. Works on averaged gradients, which are equal
// on all ranks. So all ranks find the same gradient in the same step.
class GradientCheck final : public Policy {
 public:
  enum class Then { stop, skip };

  // parameters: those of the optimizer. then: what a gradient that is not finite causes. Stop: an Error(failure) that
  // names the parameter. Skip: the optimizer leaves out the step, and a warning names the parameter.
  GradientCheck(std::vector<NamedTensor> parameters, Then then) : parameters_(std::move(parameters)), then_(then) {}

  bool skips_step(int64_t step) override;

 private:
  const std::vector<NamedTensor> parameters_;
  const Then then_;
};

// Measures the speed of every rank in the first steps of a run, and sets the batch weights from these speeds. A resumed
// run uses the speeds that were measured before.
class LoadBalance final : public Policy {
 public:
  // steps: number of steps to measure, at least 1. If there are several, the first does not count, because its memory
  // is new. on_change(samples) is called with the samples of a full step by rank when they change; it may be empty.
  LoadBalance(int64_t steps, std::function<void(const std::vector<int64_t>& samples)> on_change)
      : steps_(steps), on_change_(std::move(on_change)) {}

  void start(LoopState& state) override;
  void on_step_end(const record::StepRecord& record, LoopState& state) override;

 private:
  void apply(LoopState& state) const;

  const int64_t steps_;
  const std::function<void(const std::vector<int64_t>&)> on_change_;
  int64_t seen_ = 0;
  double seconds_ = 0;
  int64_t samples_ = 0;
};

}  // namespace ddprun::train
