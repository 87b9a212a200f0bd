// WorkerThread: a thread that runs jobs in the order in which they were submitted.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace ddprun::train {

// One thread submits and waits. For collectives there is one worker per backend, because a backend serves one thread at
// a time, and all ranks must call it in the same order.
class WorkerThread {
 public:
  // Waits for the running job and discards the rest. If the job may hang, abort the backend first.
  ~WorkerThread();

  // Submits a job and returns its number, from 1. After a job has failed, later jobs are discarded.
  std::uint64_t submit(std::function<void()> job);
  // Waits until this job has finished. Throws the exception of the first failed job, if it is this job or one before
  // it.
  void wait(std::uint64_t job);
  // Waits for all submitted jobs. Then the calling thread may use the backend itself. A job may call it too: it returns
  // at once. Throws as wait.
  void drain();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_worker_;
  std::condition_variable wake_waiter_;
  std::deque<std::function<void()>> jobs_;
  std::uint64_t submitted_ = 0;
  std::uint64_t ended_ = 0;
  std::exception_ptr failure_;  // of job number ended_; no job runs after it
  bool stopping_ = false;
  std::atomic<std::thread::id> runs_on_{};  // the id of thread_, which only it compares
  std::thread thread_;                      // started with the first job
};

}  // namespace ddprun::train
