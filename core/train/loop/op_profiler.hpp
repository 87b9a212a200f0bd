// LibTorch's profiler, on our clock.
#pragma once

#include <vector>

#include "record/trace.hpp"

namespace ddprun::train {

// Keeps LibTorch's profiler from logging every GPU that is not there: sets KINETO_LOG_LEVEL in the environment, unless
// the user did. Before the process has other threads, because they may read the environment meanwhile.
void silence_profiler();

// Records every operation of this thread, and of those that at::ThreadLocalState carries it to, between start() and
// stop(). One thread; one profiler at a time in a process.
class OpProfiler {
 public:
  OpProfiler() = default;
  ~OpProfiler();
  OpProfiler(const OpProfiler&) = delete;
  OpProfiler& operator=(const OpProfiler&) = delete;

  void start();
  // The operations since start(), on threads numbered from kFirstThread, in the order in which they began. Their times
  // are those of steady_clock, to a few microseconds: the profiler's clock is another, and the two are compared once.
  std::vector<record::Span> stop();
  bool running() const { return running_; }

  static constexpr int64_t kFirstThread = 10;

 private:
  bool running_ = false;
  int64_t marked_at_ = 0;  // when kMark was recorded
};

}  // namespace ddprun::train
