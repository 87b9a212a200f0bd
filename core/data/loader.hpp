// Loader: worker threads that fetch batches ahead, into buffers that are used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::data {

// One batch. The memory belongs to the loader, is aligned to 64 bytes, never null, and valid (for writing too) until
// the next call of next() or start(), or the loader's end.
struct Batch {
  int64_t size = 0;         // samples
  void* inputs = nullptr;   // [size, input shape...] of the data set's input type
  void* targets = nullptr;  // [size, target shape...]
};

// Gives so many bytes, aligned to 64. Called on the thread that calls Loader::start().
using MemorySource = std::function<std::shared_ptr<std::byte>(std::size_t bytes)>;

struct LoaderOptions {
  int workers = 2;  // threads; 0: the caller's own thread fetches inside next()
  int prefetch =
      2;  // batches ahead per worker; small ones go further ahead, since waking a thread costs more than they do
  MemorySource memory = {};  // of the batches; empty: ordinary memory
};

// Batches of one epoch at a time, in the order of the indices whatever the number of workers. One thread calls it.
class Loader {
 public:
  virtual ~Loader() = default;
  // Begins an epoch (from 0): batch i is fetched from batches[i], a list of indices that may be empty. What an earlier
  // epoch had left is thrown away; what workers are busy with is waited for, a sample or 64 KiB at most. Memory is
  // taken here, for the largest batch so far, and not again in next().
  virtual void start(std::vector<std::vector<int64_t>> batches, int64_t epoch) = 0;
  // The next batch, or false after the last (or before start). Rethrows what a worker threw, at the batch where it
  // happened; the call after that goes on with the batch behind it. Waiting here is the data time of a step.
  virtual bool next(Batch& batch) = 0;
  // Whether next() would give a batch at once: fetched already, and without a fault.
  virtual bool ready() = 0;
};

// The data set must outlive the loader. Throws Error(usage) for fewer than 0 workers or, with workers, less than 1
// batch of prefetch; Error(failure) when a thread cannot be started.
std::unique_ptr<Loader> make_loader(const Dataset& dataset, LoaderOptions options);

// The indices of each batch of an epoch.
using Batches = std::vector<std::vector<int64_t>>;

// Cuts indices into batches of batch_size, the last one shorter (or left out: drop_last). Throws Error(usage) for a
// batch_size below 1.
Batches cut_batches(const std::vector<int64_t>& indices, int64_t batch_size, bool drop_last);

}  // namespace ddprun::data
