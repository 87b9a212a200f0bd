// BucketTransport: sums full buckets over the ranks. It decides which thread calls the backend and which stream waits
// for which.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "train/reduce/bucket.hpp"

namespace ddprun::train {

class CommThread;

// In each step: start() for every bucket in order, including the last, then finish() for every bucket. Only one thread
// calls at a time.
class BucketTransport {
 public:
  virtual ~BucketTransport() = default;
  // All gradients are in this bucket, or their copies are queued on the calling thread's current stream.
  virtual void start(std::size_t bucket) = 0;
  // Afterwards the bucket holds the sums. On a GPU this holds for work that the calling thread queues later on its
  // current stream. As start(), it throws what the stages of the hook throw.
  virtual void finish(std::size_t bucket) = 0;
  // Instead of finish(), after an error: waits for the buckets that were started. Throws as finish().
  virtual void abandon() = 0;

  // Call it between two steps. Off: the work is recorded into a CUDA graph, in which events report no times. On by
  // default.
  virtual void set_timing(bool on) { (void)on; }
  // Of the last measured step whose buckets are all finished, and totals over all such steps. On a GPU both wait for
  // the times.
  virtual std::vector<Transfer> transfers() const = 0;
  virtual double seconds() const = 0;
};

// The communication thread reduces all buckets but the last while backward runs. finish() reduces the last one, because
// no backward is left to overlap with. If hook.complete is set, the thread reduces the last one too, while finish()
// completes the earlier ones. Host memory: start() and finish() call the hook's other stages. CUDA memory with a
// blocking backend: the thread waits until the stream of start() has reached the bucket, and calls all stages.
// `buckets` and `hook` may change between steps; all references must outlive the result.
std::unique_ptr<BucketTransport> thread_transport(std::vector<Bucket>& buckets, const BucketHook& hook,
                                                  CommThread& thread);

// For CUDA memory and a stream-ordered backend: queues each bucket immediately on a separate stream. That stream waits
// for the stream of start(), and the stream of finish() waits for it. The host never waits. Times come from events that
// are read some steps later. Lifetimes are as above.
std::unique_ptr<BucketTransport> stream_transport(std::vector<Bucket>& buckets, const BucketHook& hook);

// One per backend, because a backend serves one thread at a time, and all ranks must call it in the same order. One
// thread submits and waits.
class CommThread {
 public:
  CommThread() = default;
  // Waits for the running job and discards the rest. If the job may hang, abort the backend first.
  ~CommThread();
  CommThread(const CommThread&) = delete;
  CommThread& operator=(const CommThread&) = delete;

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
