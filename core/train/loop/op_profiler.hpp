// LibTorch's profiler, with times on the clock of this program.
#pragma once

#include <vector>

#include "record/trace.hpp"

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

}  // namespace ddprun::train
