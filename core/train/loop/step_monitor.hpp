// StepMonitor: the step under way, as the strategy and the parts of the loop report on it.
#pragma once

#include <cmath>
#include <cstdint>

#include "train/loop/callback.hpp"
#include "train/loop/step_timer.hpp"

namespace ddprun::train {

// One thread. The callbacks must outlive it.
class StepMonitor {
 public:
  StepMonitor(torch::Device device, Callback& callbacks) : timer(device), callbacks_(callbacks) {}

  // A phase of the current step begins. bucket: of an allreduce.
  void phase(Phase phase, int bucket = -1) { callbacks_.on_phase(phase, step, bucket); }
  // A phase of another step: of the next one, or of one that a GPU still works at.
  void phase_of(int64_t other, Phase phase) { callbacks_.on_phase(phase, other, -1); }

  void begin(record::StepRecord& record) {
    record_ = &record;
    timer.begin();
  }
  void end() { record_ = nullptr; }
  // The time since the last lap belongs to this part of the step. For parts that only some strategies have: absent
  // until then. Nothing happens outside a step, as in an evaluation.
  void end_of(double record::StepRecord::*part) {
    if (record_ == nullptr) return;
    double& seconds = record_->*part;
    if (std::isnan(seconds)) seconds = 0;
    timer.lap(*record_, part);
  }

  int64_t step = 0;  // global, under way or done, from 1
  StepTimer timer;

 private:
  Callback& callbacks_;
  record::StepRecord* record_ = nullptr;  // of the step under way
};

}  // namespace ddprun::train
