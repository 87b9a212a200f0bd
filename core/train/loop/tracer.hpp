// Tracer: records what this rank does in chosen steps, for a timeline.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "record/trace.hpp"
#include "train/loop/observer.hpp"
#include "train/reduce/bucketed_reducer.hpp"

namespace ddprun::train {

// Of each chosen step: its phases, the allreduce of each bucket and when the bucket was full ("ready", a span without
// length; not on a GPU). Other steps cost nothing. Single-threaded.
class Tracer final : public Observer {
 public:
  // steps: numbers in the run, from 1.
  explicit Tracer(std::vector<int64_t> steps) : steps_(std::move(steps)) {}
  // The reducer whose allreduces are traced. It must outlive the last step.
  void trace_allreduces_of(const BucketedReducer& reducer) { reducer_ = &reducer; }

  void on_phase(Phase phase, int64_t step, int bucket) override;
  bool needs_sync(int64_t step) override { return is_chosen(step); }
  void on_step_end(const record::StepRecord& record, int64_t step_of_epoch, const LoopState& state) override;

  // The trace of all steps so far.
  record::RankTrace trace() const;

 private:
  bool is_chosen(int64_t step) const { return std::find(steps_.begin(), steps_.end(), step) != steps_.end(); }
  void add_allreduces(int64_t step);

  const std::vector<int64_t> steps_;
  const BucketedReducer* reducer_ = nullptr;
  std::vector<record::Span> done_;    // of completed steps
  std::vector<record::Span> phases_;  // of the current step; the last is still open
  int64_t step_ = 0;                  // that is being traced; 0: none
};

}  // namespace ddprun::train
