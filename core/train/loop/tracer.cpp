#include "train/loop/tracer.hpp"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>

namespace ddprun::train {
namespace {

namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;

// A profiler event whose time is known on both clocks.
constexpr const char* kMark = "ddprun.clock";

int64_t nanoseconds(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

int64_t now() {
  return nanoseconds(std::chrono::steady_clock::now());
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

namespace {

enum Thread : int64_t { kStepThread, kPhaseThread, kAllreduceThread };

// The phases within a step; others are between steps.
bool is_of_a_step(Phase phase) {
  return phase == Phase::data || phase == Phase::broadcast || phase == Phase::forward || phase == Phase::backward ||
         phase == Phase::allreduce || phase == Phase::optimizer;
}

}  // namespace

void Tracer::on_phase(Phase phase, int64_t step, int bucket) {
  if (phase == Phase::data || !is_of_a_step(phase)) drop();  // a step that the end of the epoch cut off
  if (phase == Phase::data && is_chosen(step)) {
    step_ = step;
    profiler_.start();
  }
  // The allreduces have spans of their own thread; this span is this rank's wait for one.
  begin_phase(phase == Phase::allreduce ? "wait" : name_of(phase), bucket);
}

void Tracer::on_step_end(const record::StepRecord& record, int64_t, const LoopState&) {
  if (!profiler_.running()) return;
  end_phase();
  for (record::Span& span : profiler_.stop()) done_.push_back(std::move(span));
  done_.push_back({"step " + std::to_string(record.step),
                   phases_.front().begin,
                   phases_.back().end,
                   kStepThread,
                   {{"step", record.step}, {"samples", record.samples}}});
  add_allreduces(record.step);
  done_.insert(done_.end(), phases_.begin(), phases_.end());
  phases_.clear();
}

bool Tracer::needs_sync(int64_t step) {
  return is_chosen(step);
}

bool Tracer::is_chosen(int64_t step) const {
  return std::find(steps_.begin(), steps_.end(), step) != steps_.end();
}

void Tracer::drop() {
  if (profiler_.running()) profiler_.stop();
  phases_.clear();
  in_phase_ = false;
}

void Tracer::begin_phase(const std::string& name, int bucket) {
  if (!profiler_.running()) return;
  end_phase();
  phases_.push_back({name, now(), 0, kPhaseThread, {{"step", step_}}});
  if (bucket >= 0) phases_.back().args.emplace_back("bucket", bucket);
  in_phase_ = true;
}

void Tracer::end_phase() {
  if (in_phase_) phases_.back().end = now();
  in_phase_ = false;
}

void Tracer::add_allreduces(int64_t step) {
  if (reducer_ == nullptr) return;
  int64_t bucket = 0;
  for (const Transfer& transfer : reducer_->transfers()) {
    if (transfer.ready) {
      const int64_t ready = nanoseconds(*transfer.ready);
      done_.push_back({"ready", ready, ready, kAllreduceThread, {{"step", step}, {"bucket", bucket}}});
    }
    done_.push_back({"allreduce",
                     nanoseconds(transfer.begin),
                     nanoseconds(transfer.end),
                     kAllreduceThread,
                     {{"step", step}, {"bucket", bucket++}, {"bytes", static_cast<int64_t>(transfer.bytes)}}});
  }
}

record::RankTrace Tracer::trace() const {
  record::RankTrace trace{done_, {{kStepThread, "step"}, {kPhaseThread, "phases"}, {kAllreduceThread, "allreduce"}}};
  std::set<int64_t> others;
  for (const record::Span& span : done_) {
    if (span.thread >= OpProfiler::kFirstThread) others.insert(span.thread);
  }
  for (const int64_t thread : others) {
    trace.threads.emplace_back(thread, "operations of thread " + std::to_string(thread - OpProfiler::kFirstThread));
  }
  return trace;
}

}  // namespace ddprun::train
