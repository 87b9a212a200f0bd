// An observer that traces chosen steps and passes everything on to another.
#pragma once

#include <string>
#include <vector>

#include "record/trace.hpp"
#include "train/loop/observer.hpp"
#include "train/loop/op_profiler.hpp"
#include "train/reduce/reducer.hpp"

namespace ddprun::train {

// Of each chosen step: its phases, the allreduce of each bucket, and every operation of LibTorch. Costs nothing in the
// other steps. One thread.
class Tracer final : public Observer {
 public:
  // steps: global ones, from 1. Both observers' answers are the inner one's. `inner` must outlive it.
  Tracer(Observer& inner, std::vector<int64_t> steps) : inner_(inner), steps_(std::move(steps)) {}
  // Whose allreduces are traced; it must outlive the last step.
  void follow(const Reducer& reducer) { reducer_ = &reducer; }

  void phase(launch::Phase phase, int64_t step, int bucket) override;
  // The reducer is about to wait for this bucket. Not passed on.
  void waiting_for(int bucket);
  void step(const record::StepRecord& record, int64_t step_of_epoch, int64_t steps_per_epoch) override;
  bool at_once(int64_t step) override;
  void epoch(const record::EpochRecord& record) override { inner_.epoch(record); }
  bool stop_after(int64_t step) override { return inner_.stop_after(step); }

  // What this rank did in the steps so far.
  record::RankTrace trace() const;

 private:
  bool is_chosen(int64_t step) const;
  void drop();
  void begin_phase(const std::string& name, int bucket);
  void end_phase();
  void add_allreduces(int64_t step);

  Observer& inner_;
  const std::vector<int64_t> steps_;
  const Reducer* reducer_ = nullptr;
  OpProfiler profiler_;
  std::vector<record::Span> done_;    // of whole steps
  std::vector<record::Span> phases_;  // of the step under way; the last is open
  bool in_phase_ = false;
  int64_t step_ = 0;  // under way
};

}  // namespace ddprun::train
