#include "train/loop/tracer.hpp"

#include <chrono>

namespace ddprun::train {
namespace {

int64_t nanoseconds(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

int64_t now() {
  return nanoseconds(std::chrono::steady_clock::now());
}

enum Thread : int64_t { kStepThread, kPhaseThread, kAllreduceThread };

// The phases within a step; others are between steps.
bool is_of_a_step(Phase phase) {
  return phase == Phase::data || phase == Phase::broadcast || phase == Phase::forward || phase == Phase::backward ||
         phase == Phase::allreduce || phase == Phase::optimizer;
}

}  // namespace

void Tracer::on_phase(Phase phase, int64_t step, int bucket) {
  if (phase == Phase::data || !is_of_a_step(phase)) {  // a step that the end of the epoch cut off
    step_ = 0;
    phases_.clear();
  }
  if (phase == Phase::data && is_chosen(step)) step_ = step;
  if (step_ == 0) return;
  if (!phases_.empty()) phases_.back().end = now();
  // The allreduces have spans of their own thread; this span is this rank's wait for one.
  phases_.push_back({phase == Phase::allreduce ? "wait" : name_of(phase), now(), 0, kPhaseThread, {{"step", step_}}});
  if (bucket >= 0) phases_.back().args.emplace_back("bucket", bucket);
}

void Tracer::on_step_end(const record::StepRecord& record, int64_t, const LoopState&) {
  if (step_ == 0) return;
  phases_.back().end = now();
  step_ = 0;
  done_.push_back({"step " + std::to_string(record.step),
                   phases_.front().begin,
                   phases_.back().end,
                   kStepThread,
                   {{"step", record.step}, {"samples", record.samples}}});
  add_allreduces(record.step);
  done_.insert(done_.end(), phases_.begin(), phases_.end());
  phases_.clear();
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
  return {done_, {{kStepThread, "step"}, {kPhaseThread, "phases"}, {kAllreduceThread, "allreduce"}}};
}

}  // namespace ddprun::train
