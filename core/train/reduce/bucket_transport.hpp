// BucketTransport: sums full buckets over the ranks. It decides which thread calls the backend and which stream waits
// for which.
#pragma once

#include <cstddef>
#include <memory>
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

// Reduces all buckets but the last on the communication thread while backward runs, and the last one, which has no
// backward left to overlap with, in finish(); but with hook.complete on that thread too, while finish() completes those
// before. For host memory, where start() and finish() call the hook's other stages, and for CUDA memory with a blocking
// backend: there the thread waits until the stream of start() has reached the bucket, and calls all stages. `buckets`
// and `hook` may change between steps; all references must outlive the result.
std::unique_ptr<BucketTransport> thread_transport(std::vector<Bucket>& buckets, const BucketHook& hook,
                                                  CommThread& thread);

// For CUDA memory and a stream-ordered backend: queues each bucket immediately on a separate stream. That stream waits
// for the stream of start(), and the stream of finish() waits for it. The host never waits. Times come from events that
// are read some steps later. Lifetimes are as above.
std::unique_ptr<BucketTransport> stream_transport(std::vector<Bucket>& buckets, const BucketHook& hook);

}  // namespace ddprun::train
