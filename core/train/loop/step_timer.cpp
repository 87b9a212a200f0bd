#include "train/loop/step_timer.hpp"

#include <algorithm>

namespace ddprun::train {
namespace {

double seconds_between(const c10::Event& begin, const c10::Event& end) {
  return begin.elapsedTime(end) * 1e-3;
}

}  // namespace

void StepTimer::mark(double record::StepRecord::*part) {
  if (spare_.empty()) spare_.push_back(timing_event(device_));
  marks_.push_back({part, std::move(spare_.back())});
  spare_.pop_back();
  marks_.back().event.record(current_stream(device_));
}

void StepTimer::read(Marks marks, record::StepRecord& record) {
  const c10::Event &begin = marks.front().event, &end = marks.back().event;
  end.synchronize();
  for (std::size_t i = 1; i < marks.size(); ++i) {
    record.*marks[i].part += seconds_between(marks[i - 1].event, marks[i].event);
  }
  if (last_end_) {
    record.data = std::min(record.data, seconds_between(*last_end_, begin));
    record.total = seconds_between(*last_end_, end);
    spare_.push_back(std::move(*last_end_));
  } else {
    record.total = record.data + seconds_between(begin, end);
  }
  last_end_ = std::move(marks.back().event);
  marks.pop_back();
  for (Mark& mark : marks) spare_.push_back(std::move(mark.event));
}

}  // namespace ddprun::train
