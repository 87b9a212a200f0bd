#include "train/step_timer.hpp"

namespace ddprun::train {

void StepTimer::mark(double record::StepRecord::*part) {
  if (spare_.empty()) spare_.push_back(timing_event(device_));
  marks_.push_back({part, std::move(spare_.back())});
  spare_.pop_back();
  marks_.back().event.record(current_stream(device_));
}

void StepTimer::read(Marks marks, record::StepRecord& record) {
  constexpr double kMilliseconds = 1e-3;
  marks.back().event.synchronize();
  for (std::size_t i = 1; i < marks.size(); ++i) {
    record.*marks[i].part += marks[i - 1].event.elapsedTime(marks[i].event) * kMilliseconds;
  }
  for (Mark& mark : marks) spare_.push_back(std::move(mark.event));
}

}  // namespace ddprun::train
