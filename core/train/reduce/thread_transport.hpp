// CommThread: runs collectives in the order in which they were submitted. thread_transport() uses it for CPU tensors.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace ddprun::train {

class CommThread {
 public:
  CommThread();
  // Waits for the running job and discards the rest. If the job may hang, abort the backend first.
  ~CommThread();
  CommThread(const CommThread&) = delete;
  CommThread& operator=(const CommThread&) = delete;

  // Submits a job. After a job has failed, later jobs are discarded until wait() has thrown.
  void submit(std::function<void()> job);
  // Waits until `count` jobs since the last reset have finished. Throws the exception of the first failed job, if it is
  // one of these.
  void wait(std::uint64_t count);
  // Restarts the count. Call it only after all jobs have been waited for.
  void reset();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_worker_;
  std::condition_variable wake_waiter_;
  std::deque<std::function<void()>> jobs_;
  std::uint64_t ended_ = 0;
  std::exception_ptr failure_;  // of job number ended_, counted from 1; no job runs after it
  bool stopping_ = false;
  std::thread thread_;  // last member: it uses all of the above
};

}  // namespace ddprun::train
