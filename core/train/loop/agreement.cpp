#include "train/loop/agreement.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "comm/group.hpp"
#include "train/loop/step_monitor.hpp"

namespace ddprun::train {
namespace {

constexpr double kInterval = 0.5;       // seconds of training between two exchanges
constexpr double kShortestStep = 1e-6;  // seconds; bounds the number of steps for any clock

}  // namespace

int64_t steps_to_next_exchange(int64_t steps, double seconds) {
  const double step = std::max(seconds / static_cast<double>(steps), kShortestStep);
  return std::clamp<int64_t>(static_cast<int64_t>(kInterval / step), 1, 2 * steps);
}

Agreement::Agreement(AgreementOptions options) : options_(std::move(options)) {
  if (!options_.clock) options_.clock = [watch = Stopwatch()] { return watch.total(); };
}

void Agreement::start(LoopState& state) {
  state_ = &state;
  last_ = state.at.step;
  next_ = last_ + 1;
  last_time_ = options_.clock();
  next_checkpoint_ = last_time_ + options_.checkpoint_seconds;
}

// A step on a GPU is reported only after the next one is queued. Without pending steps, an exchange waits only for the
// other ranks.
Decision Agreement::after_step(int64_t step) {
  if (step >= next_) exchange(step);
  return {.checkpoint = checkpoint_due_ && step == last_,
          .stop = stopped_by_ != ExitCode::ok ? kInterrupted : std::string()};
}

void Agreement::exchange(int64_t step) {
  const comm::Group& ranks = state_->ranks;
  if (ranks.size() > 1) state_->monitor.phase(Phase::barrier);
  const ExitCode requested = options_.stop_requested();
  const double now = options_.clock();
  const bool due = options_.checkpoint_seconds > 0 && now >= next_checkpoint_;
  const double of_rank0 = ranks.rank() == 0 ? 1 : 0;
  const auto sums =
      ranks.sum({requested == ExitCode::interrupted ? 1.0 : 0, requested == ExitCode::terminated ? 1.0 : 0,
                 of_rank0 * (now - last_time_), of_rank0 * (due ? 1 : 0)});
  if (sums[0] > 0) stopped_by_ = ExitCode::interrupted;
  if (sums[1] > 0) stopped_by_ = ExitCode::terminated;
  checkpoint_due_ = sums[3] > 0;
  if (checkpoint_due_) next_checkpoint_ = now + options_.checkpoint_seconds;
  next_ = step + (ranks.size() > 1 ? steps_to_next_exchange(step - last_, sums[2]) : 1);
  last_ = step;
  last_time_ = now;
  if (stopped_by_ != ExitCode::ok && ranks.rank() == 0) log::info("stopping after step " + std::to_string(step));
}

}  // namespace ddprun::train
