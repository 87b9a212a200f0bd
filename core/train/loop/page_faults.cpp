#include "train/loop/page_faults.hpp"

#include "ddprun/records.hpp"
#include "record/environment.hpp"

namespace ddprun::train {

void PageFaultMeter::start(int64_t steps) {
  if (steps < kWarmSteps) return;
  first_ = steps;
  faults_then_ = record::page_faults();
}

void PageFaultMeter::stop(int64_t steps) {
  if (first_ < 0) return;
  faults_ += record::page_faults() - faults_then_;
  steps_ += steps - first_;
  first_ = -1;
}

double PageFaultMeter::per_step() const {
  return steps_ == 0 ? record::kAbsent : static_cast<double>(faults_) / static_cast<double>(steps_);
}

}  // namespace ddprun::train
