// Loader: worker threads that prefetch batches into reused buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::data {

// One batch. The Loader owns the memory. It is aligned to 64 bytes, never null, and may be read and written until the
// next call of next() or start(), or the Loader's destruction.
struct Batch {
  int64_t size = 0;         // samples
  void* inputs = nullptr;   // [size, input shape...] of the data set's input type
  void* targets = nullptr;  // [size, target shape...]
};

// Allocates memory, aligned to 64 bytes. Called on the thread that calls Loader::start().
using MemorySource = std::function<std::shared_ptr<std::byte>(std::size_t bytes)>;

struct LoaderOptions {
  int workers = 2;   // threads; 0: next() fetches in the caller's thread
  int prefetch = 2;  // batches per worker; more if they are small, because waking a thread costs more than such a batch
  MemorySource memory = {};  // for the batches; empty: ordinary memory
};

// The indices of each batch of an epoch.
using Batches = std::vector<std::vector<int64_t>>;

// Batches of one epoch at a time, in the order of the indices for any number of workers. One thread calls it.
class Loader {
 public:
  virtual ~Loader() = default;
  // Begins an epoch (from 0): batch i is fetched from batches[i], a list of indices that may be empty. Discards the
  // rest of an earlier epoch and waits for busy workers, which stop after a sample or 64 KiB. Allocates memory for the
  // largest batch so far, so that next() need not.
  virtual void start(Batches batches, int64_t epoch) = 0;
  // The next batch, or false after the last (or before start). Rethrows a worker's exception at the batch where it
  // happened; the next call continues with the batch after that. The time spent here is the data time of a step.
  virtual bool next(Batch& batch) = 0;
  // Whether next() would return a batch without waiting: it is fetched and there was no error.
  virtual bool ready() = 0;
};

// The data set must outlive the loader. Throws Error(usage) for workers < 0, or with workers for prefetch < 1;
// Error(failure) if a thread cannot be started.
std::unique_ptr<Loader> make_loader(const Dataset& dataset, LoaderOptions options);

// Cuts indices into batches of batch_size; the last one may be shorter, or is left out with drop_last. Throws
// Error(usage) for a batch_size below 1.
Batches cut_batches(const std::vector<int64_t>& indices, int64_t batch_size, bool drop_last);

// Load balance: splits `total` in proportion to the weights by the method of largest remainders (Hamilton 1792; of
// equal remainders the first wins). The parts add up to total, and each is its exact quota rounded down or up. Weights
// must be at least 0, and not all 0.
std::vector<int64_t> apportion(int64_t total, const std::vector<double>& weights);

// One batch per step: those of all lists, one after the other.
Batches concatenated(const std::vector<Batches>& batches);

// The batches of `rank`, one per step, if each step's samples (of all ranks, in rank order) are split by weight.
// `batches` holds the unweighted batches of every rank.
Batches share_out(const std::vector<Batches>& batches, int rank, const std::vector<double>& weights);

}  // namespace ddprun::data
