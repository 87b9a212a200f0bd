// BucketTransport: sums full buckets over the ranks. It decides which thread calls the backend and which stream waits
// for which.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "train/device/worker_thread.hpp"
#include "train/reduce/bucket.hpp"

namespace ddprun::train {

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

  // Of the last step whose buckets are all finished, and totals over all such steps. On a GPU both wait for
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
                                                  WorkerThread& thread);

// For CUDA memory and a stream-ordered backend: queues each bucket immediately on a separate stream. That stream waits
// for the stream of start(), and the stream of finish() waits for it. The host never waits. Times come from events that
// are read some steps later. Lifetimes are as above.
std::unique_ptr<BucketTransport> stream_transport(std::vector<Bucket>& buckets, const BucketHook& hook);

}  // namespace ddprun::train
