// Agreement: all ranks stop training, or save a checkpoint, after the same step, though only one of them knows the
// reason.
#pragma once

#include <cstdint>
#include <functional>

#include "ddprun/error.hpp"
#include "train/loop/policy.hpp"

namespace ddprun::train {

struct AgreementOptions {
  // Whether this rank has got a request to stop: interrupted or terminated; ok for none. Called often; must not block.
  std::function<ExitCode()> stop_requested = [] { return ExitCode::ok; };
  double checkpoint_seconds = 0;  // between checkpoints, by rank 0's clock; 0: none by time
  std::function<double()> clock;  // seconds; empty: the host's steady clock
};

// The number of steps until the next exchange, if `steps` steps since the last one took `seconds`: half a second of
// training, but at least one step and at most twice `steps`.
int64_t steps_to_next_exchange(int64_t steps, double seconds);

// Every few steps the ranks exchange their requests (one allgather of a few numbers), so all ranks decide the same for
// the same step. All compute the step of the next exchange from rank 0's clock. A single rank decides after every step.
// An exchange happens when no step is pending.
class Agreement final : public Policy {
 public:
  explicit Agreement(AgreementOptions options);

  void start(LoopState& state) override;
  bool needs_sync(int64_t step) override { return step == next_ && state_->ranks.size() > 1; }
  Decision after_step(int64_t step) override;

  // Why the ranks stopped: interrupted or terminated. ok if they did not. Equal on all ranks.
  ExitCode stopped_by() const { return stopped_by_; }

 private:
  void exchange(int64_t step);

  AgreementOptions options_;
  LoopState* state_ = nullptr;
  int64_t last_ = 0;  // the step of the last exchange
  int64_t next_ = 0;
  double last_time_ = 0;
  double next_checkpoint_ = 0;
  bool checkpoint_due_ = false;  // after step last_
  ExitCode stopped_by_ = ExitCode::ok;
};

}  // namespace ddprun::train
