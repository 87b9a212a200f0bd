#include "train/loop/op_profiler.hpp"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

namespace ddprun::train {
namespace {

namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;

// A profiler event whose time is known on both clocks.
constexpr const char* kMark = "ddprun.clock";

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void silence_profiler() {
  constexpr int keep = 0;
  setenv("KINETO_LOG_LEVEL", "99", keep);
}

OpProfiler::~OpProfiler() {
  if (running_) profiler::disableProfiler();
}

void OpProfiler::start() {
  const ProfilerConfig config(ProfilerState::KINETO);
  const std::set<ActivityType> activities{ActivityType::CPU};
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  running_ = true;
  const int64_t before = now();
  { RECORD_USER_SCOPE(kMark); }
  marked_at_ = before + (now() - before) / 2;
}

std::vector<record::Span> OpProfiler::stop() {
  const auto result = profiler::disableProfiler();
  running_ = false;
  const auto& events = result->events();
  const auto mark = std::find_if(events.begin(), events.end(), [](const auto& event) { return event.name() == kMark; });
  if (mark == events.end()) return {};
  const auto middle = static_cast<int64_t>(mark->startNs() + mark->durationNs() / 2);
  const int64_t offset = marked_at_ - middle;
  std::vector<record::Span> spans;
  for (const auto& event : events) {
    if (event.name() == kMark) continue;
    spans.push_back({event.name(),
                     static_cast<int64_t>(event.startNs()) + offset,
                     static_cast<int64_t>(event.endNs()) + offset,
                     kFirstThread + static_cast<int64_t>(event.startThreadId()),
                     {}});
  }
  return spans;
}

}  // namespace ddprun::train
