#include "train/loop/policies.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/log.hpp"
#include "comm/group.hpp"
#include "ddprun/error.hpp"
#include "record/fields.hpp"
#include "train/loop/data_loader.hpp"

namespace ddprun::train {

double needed_metric(const record::EpochRecord& epoch, const std::string& metric, const std::string& key) {
  const double value = record::metric_of(epoch, metric);
  if (!std::isnan(value)) return value;
  throw Error(ExitCode::usage,
              key + " = \"" + metric + "\": this model has no such metric; use \"test.loss\" or \"train.loss\"");
}

bool is_better(const std::string& metric, double value, double than, double by) {
  if (std::isnan(value)) return false;
  if (std::isnan(than)) return true;
  return metric.ends_with(".loss") ? value < than - by : value > than + by;
}

namespace {

// Keys of Position::numbers.
const std::string kBest = "early_stop.best", kWaited = "early_stop.waited";

}  // namespace

Decision EarlyStop::after_epoch(const record::EpochRecord& record, LoopState& state) {
  if (state.ends_after(record.epoch) || !should_stop_after(record, state.at.numbers)) return {};
  return {.checkpoint = true, .stop = kEarlyStop};
}

bool EarlyStop::should_stop_after(const record::EpochRecord& epoch, std::map<std::string, double>& numbers) const {
  const double value = needed_metric(epoch, rule_.metric, "train.early_stop");
  const auto best = numbers.find(kBest);
  if (best == numbers.end() || is_better(rule_.metric, value, best->second, rule_.min_delta)) {
    numbers[kBest] = value;
    numbers[kWaited] = 0;
    return false;
  }
  return ++numbers[kWaited] >= static_cast<double>(rule_.patience);
}

namespace {

// A sum is much faster than isfinite(). It is not finite if an element is not, or if it overflows: only then is each
// element examined.
bool is_finite(const torch::Tensor& gradient) {
  return std::isfinite(gradient.sum().item<double>()) || gradient.isfinite().all().item<bool>();
}

}  // namespace

bool GradientCheck::skips_step(int64_t step) {
  const torch::NoGradGuard no_grad;
  const auto bad = [](const NamedTensor& parameter) {
    const torch::Tensor& gradient = parameter.tensor.grad();
    return gradient.defined() && !is_finite(gradient);
  };
  const auto first = std::find_if(parameters_.begin(), parameters_.end(), bad);
  if (first == parameters_.end()) return false;
  const bool nan = first->tensor.grad().isnan().any().item<bool>();
  const std::string what = "the gradient of " + first->name + " is " + (nan ? "nan" : "infinite");
  if (then_ == Then::stop) {
    throw Error(ExitCode::failure,
                what + "; a smaller optimizer.lr usually helps; the weights are those before this step");
  }
  log::warning("step " + std::to_string(step) + ": " + what + "; the optimizer leaves out this step");
  return true;
}

void LoadBalance::start(LoopState& state) {
  if (state.at.numbers.contains(speed_name(0))) apply(state);
}

void LoadBalance::on_step_end(const record::StepRecord& record, LoopState& state) {
  if (state.ranks.size() == 1 || state.at.numbers.contains(speed_name(0))) return;
  if (++seen_ > 1 || steps_ == 1) {
    seconds_ += record.forward + record.backward;
    samples_ += record.samples;
  }
  if (seen_ < steps_) return;
  constexpr double kLeastSeconds = 1e-9;
  // Samples per second of forward and backward; positive.
  const double speed = static_cast<double>(std::max<int64_t>(samples_, 1)) / std::max(seconds_, kLeastSeconds);
  const std::vector<double> speeds = state.ranks.gather(std::vector{speed});
  for (std::size_t rank = 0; rank < speeds.size(); ++rank) {
    state.at.numbers[speed_name(static_cast<int>(rank))] = speeds[rank];
  }
  apply(state);
  state.train.start(state.at.epoch, state.at.step_of_epoch);
}

void LoadBalance::apply(LoopState& state) const {
  std::vector<double> speeds;
  for (int rank = 0; rank < state.ranks.size(); ++rank) speeds.push_back(state.at.numbers.at(speed_name(rank)));
  state.train.set_batch_weights(speeds);
  if (on_change_) on_change_(state.train.samples_per_rank());
}

}  // namespace ddprun::train
