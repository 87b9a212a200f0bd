// A thread that runs collectives in the order in which they were handed over.
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
  // Lets the job under way end (abort the backend first if it may hang) and drops the rest.
  ~CommThread();
  CommThread(const CommThread&) = delete;
  CommThread& operator=(const CommThread&) = delete;

  // Hands a job over. After one has failed, later ones are dropped until wait() has thrown.
  void submit(std::function<void()> job);
  // Waits until `count` jobs since the last reset have ended. Throws what the first failing job threw, if it is one of
  // these.
  void wait(std::uint64_t count);
  // Begins counting anew; only when all jobs have been waited for.
  void reset();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_worker_;
  std::condition_variable wake_waiter_;
  std::deque<std::function<void()>> jobs_;
  std::uint64_t ended_ = 0;
  std::exception_ptr failure_;  // of job number ended_, counted from 1; none runs after it
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace ddprun::train
