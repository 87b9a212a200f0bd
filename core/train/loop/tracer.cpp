#include "train/loop/tracer.hpp"

#include <algorithm>
#include <chrono>
#include <set>

namespace ddprun::train {
namespace {

using launch::Phase;

enum Thread : int64_t { kStep, kPhases, kAllreduce };

int64_t nanoseconds(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

int64_t now() {
  return nanoseconds(std::chrono::steady_clock::now());
}

// The phases that a step is made of; others lie between steps.
bool is_of_a_step(Phase phase) {
  return phase == Phase::data || phase == Phase::broadcast || phase == Phase::forward || phase == Phase::backward ||
         phase == Phase::optimizer;
}

}  // namespace

void Tracer::phase(Phase phase, int64_t step, int bucket) {
  inner_.phase(phase, step, bucket);
  if (phase == Phase::data || !is_of_a_step(phase)) drop();  // a step that the epoch's end cut off
  if (phase == Phase::data && is_chosen(step)) {
    step_ = step;
    profiler_.start();
  }
  begin_phase(launch::name_of(phase), bucket);
}

void Tracer::waiting_for(int bucket) {
  begin_phase("wait", bucket);
}

void Tracer::step(const record::StepRecord& record, int64_t step_of_epoch, int64_t steps_per_epoch) {
  if (profiler_.running()) {
    end_phase();
    for (record::Span& span : profiler_.stop()) done_.push_back(std::move(span));
    done_.push_back({"step " + std::to_string(record.step),
                     phases_.front().begin,
                     phases_.back().end,
                     kStep,
                     {{"step", record.step}, {"samples", record.samples}}});
    add_allreduces(record.step);
    done_.insert(done_.end(), phases_.begin(), phases_.end());
    phases_.clear();
  }
  inner_.step(record, step_of_epoch, steps_per_epoch);
}

bool Tracer::at_once(int64_t step) {
  return is_chosen(step) || inner_.at_once(step);
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
  phases_.push_back({name, now(), 0, kPhases, {{"step", step_}}});
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
    done_.push_back({"allreduce",
                     nanoseconds(transfer.begin),
                     nanoseconds(transfer.end),
                     kAllreduce,
                     {{"step", step}, {"bucket", bucket++}, {"bytes", static_cast<int64_t>(transfer.bytes)}}});
  }
}

record::RankTrace Tracer::trace() const {
  record::RankTrace trace{done_, {{kStep, "step"}, {kPhases, "phases"}, {kAllreduce, "allreduce"}}};
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
