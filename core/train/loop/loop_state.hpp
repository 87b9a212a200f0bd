// How long a training runs, and how far it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/group.hpp"
#include "train/loop/position.hpp"

namespace ddprun::train {

class DataLoader;
class StepMonitor;

struct Plan {
  std::optional<int64_t> epochs;  // exactly one of epochs and steps is set
  std::optional<int64_t> steps;
  bool evaluate = true;  // after each epoch
};

inline const std::string kInterrupted = "interrupted", kEarlyStop = "early_stop";

// The progress of a training. The training loop updates it; observers read it, and policies may change `at` and `train`.
struct LoopState {
  const Plan& plan;
  const comm::Group& ranks;
  DataLoader& train;
  StepMonitor& monitor;
  Position at;          // whenever an observer or a policy is called, `at.step` is the current step
  bool stop = false;    // no further step: either the plan is complete, or `stopped` gives the reason
  std::string stopped;  // kInterrupted or kEarlyStop; empty: the plan is complete

  // Whether training ends after this number of epochs.
  bool ends_after(int64_t epochs_done) const { return stop || (plan.epochs && epochs_done >= *plan.epochs); }
  // Number of epochs whose steps are all done.
  int64_t complete_epochs() const;
};

}  // namespace ddprun::train
