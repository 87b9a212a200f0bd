// How full buckets get their sums over the ranks: which thread calls the backend, and which stream waits for which.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "ddprun/comm_backend.hpp"
#include "train/reduce/bucket.hpp"
#include "train/reduce/transfer.hpp"

namespace ddprun::train {

// Each step: start() for every bucket in their order, the last one included, then finish() for every bucket. One thread
// at a time.
class BucketTransport {
 public:
  virtual ~BucketTransport() = default;
  // All gradients are in this bucket, or queued to get there on the calling thread's current stream.
  virtual void start(std::size_t bucket) = 0;
  // From now on the sums are in it, for the host or, where they are on a GPU, for what the calling thread queues on its
  // current stream. Throws what the allreduce threw.
  virtual void finish(std::size_t bucket) = 0;

  // Off, between two steps: what is queued is recorded into a CUDA graph, whose events tell no times. On at first.
  virtual void set_timing(bool on) { (void)on; }
  // Of the last measured step whose buckets are all finished; and of all such steps. On a GPU they wait until they are
  // known.
  virtual std::vector<Transfer> transfers() const = 0;
  virtual double seconds() const = 0;
};

// All but the last bucket on a communication thread while backward goes on; the last has nothing to hide behind, and
// runs in finish(). For host memory, and for CUDA memory with a backend that blocks: then the thread waits until the
// stream of start() has come to the bucket. `buckets` may change between steps; both must outlive the result.
std::unique_ptr<BucketTransport> thread_transport(CommBackend& backend, std::vector<Bucket>& buckets,
                                                  std::chrono::milliseconds timeout);

// For CUDA memory and a stream-ordered backend: each bucket at once, on a stream of its own that waits for that of
// start(), and is waited for by that of finish(). The host waits for nothing. Times by events, which are read some
// steps later. Likewise.
std::unique_ptr<BucketTransport> stream_transport(CommBackend& backend, std::vector<Bucket>& buckets,
                                                  std::chrono::milliseconds timeout);

}  // namespace ddprun::train
