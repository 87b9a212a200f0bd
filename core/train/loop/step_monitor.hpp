// StepMonitor: through it, the strategy and the parts of the loop report on the current step.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "ddprun/records.hpp"
#include "train/loop/observer.hpp"
#include "train/loop/step_timer.hpp"

namespace ddprun::train {

// Single-threaded. The observers must outlive it.
class StepMonitor {
 public:
  StepMonitor(torch::Device device, const std::vector<Observer*>& observers) : timer(device), observers_(observers) {}

  // A phase of the current step begins. bucket: of an allreduce.
  void phase(Phase phase, int bucket = -1) { phase_of(step, phase, bucket); }
  // A phase of another step begins: of the next one, or of one that the GPU is still executing.
  void phase_of(int64_t other, Phase phase, int bucket = -1) {
    for (Observer* each : observers_) each->on_phase(phase, other, bucket);
  }

  void begin(record::StepRecord& record) {
    record_ = &record;
    timer.begin();
  }
  void end() { record_ = nullptr; }
  // Assigns the time since the last lap to this part of the step. A part that only some strategies have is absent until
  // then. Does nothing outside a step, for example in an evaluation.
  void end_of(double record::StepRecord::*part) {
    if (record_ == nullptr) return;
    double& seconds = record_->*part;
    if (std::isnan(seconds)) seconds = 0;
    timer.lap(*record_, part);
  }

  int64_t step = 0;  // current or last step of the run, from 1
  StepTimer timer;

 private:
  const std::vector<Observer*>& observers_;
  record::StepRecord* record_ = nullptr;  // of the current step
};

}  // namespace ddprun::train
