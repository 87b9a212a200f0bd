// Tracer: records what this rank does in chosen steps, for a timeline, with the operations that LibTorch's profiler
// sees.
#pragma once

#include <string>
#include <vector>

#include "record/trace.hpp"
#include "train/loop/observer.hpp"
#include "train/reduce/bucketed_reducer.hpp"

namespace ddprun::train {

// Keeps LibTorch's profiler from logging a message for every missing GPU: sets KINETO_LOG_LEVEL in the environment,
// unless the user has set it. Call it before the process starts other threads, because setenv is not thread-safe.
void silence_profiler();

// Records every operation of this thread between start() and stop(), and of threads that inherit its
// at::ThreadLocalState. Single-threaded; only one profiler at a time in a process.
class OpProfiler {
 public:
  OpProfiler() = default;
  ~OpProfiler();
  OpProfiler(const OpProfiler&) = delete;
  OpProfiler& operator=(const OpProfiler&) = delete;

  void start();
  // The operations since start(), in the order in which they began, on threads numbered from kFirstThread. Times are
  // converted from the profiler's clock to steady_clock, accurate to a few microseconds.
  std::vector<record::Span> stop();
  bool running() const { return running_; }

  static constexpr int64_t kFirstThread = 10;

 private:
  bool running_ = false;
  int64_t marked_at_ = 0;  // when the kMark event was recorded
};

// Of each chosen step: its phases, the allreduce of each bucket and when the bucket was full ("ready", a span without
// length; not on a GPU), and every operation of LibTorch. Other steps cost
// nothing. Single-threaded.
class Tracer final : public Observer {
 public:
  // steps: numbers in the run, from 1.
  explicit Tracer(std::vector<int64_t> steps) : steps_(std::move(steps)) {}
  // The reducer whose allreduces are traced. It must outlive the last step.
  void trace_allreduces_of(const BucketedReducer& reducer) { reducer_ = &reducer; }

  void on_phase(Phase phase, int64_t step, int bucket) override;
  bool needs_sync(int64_t step) override;
  void on_step_end(const record::StepRecord& record, int64_t step_of_epoch, const LoopState& state) override;

  // The trace of all steps so far.
  record::RankTrace trace() const;

 private:
  bool is_chosen(int64_t step) const;
  void drop();
  void begin_phase(const std::string& name, int bucket);
  void end_phase();
  void add_allreduces(int64_t step);

  const std::vector<int64_t> steps_;
  const BucketedReducer* reducer_ = nullptr;
  OpProfiler profiler_;
  std::vector<record::Span> done_;    // of completed steps
  std::vector<record::Span> phases_;  // of the current step; the last is still open
  bool in_phase_ = false;
  int64_t step_ = 0;  // current step
};

}  // namespace ddprun::train
