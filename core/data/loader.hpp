// Loader: worker threads that fetch batches ahead, into buffers that are used again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "data/dataset.hpp"

namespace ddprun::data {

// One batch. The memory belongs to the loader and is valid until the next call of next() or the loader's end.
struct Batch {
  int64_t size = 0;  // samples
  void* inputs = nullptr;
  void* targets = nullptr;
};

struct LoaderOptions {
  int workers = 2;   // threads; 0: the caller's own thread fetches inside next()
  int prefetch = 2;  // batches ahead per worker
};

// Batches of one epoch at a time, in the order of the indices whatever the number of workers. One thread calls it.
class Loader {
 public:
  virtual ~Loader() = default;
  // Begins an epoch: batch i is fetched from batches[i], a list of indices that may be empty. What an earlier epoch had
  // left is thrown away.
  virtual void start(std::vector<std::vector<int64_t>> batches) = 0;
  // The next batch, or false after the last. Rethrows what a worker threw, at the batch where it happened. Waiting here is
  // the data time of a step.
  virtual bool next(Batch& batch) = 0;
};

// The data set must outlive the loader.
std::unique_ptr<Loader> make_loader(const Dataset& dataset, LoaderOptions options);

// Cuts indices into batches of batch_size, the last one shorter (or left out: drop_last).
std::vector<std::vector<int64_t>> cut_batches(const std::vector<int64_t>& indices, int64_t batch_size, bool drop_last);

}  // namespace ddprun::data
