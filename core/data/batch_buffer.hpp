// The memory of a batch, allocated once and used for many batches. Private to the module.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "data/loader.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::data {

// Used by one thread at a time.
class BatchBuffer {
 public:
  // Empty: ordinary memory.
  explicit BatchBuffer(MemorySource source) : source_(std::move(source)) {}

  // Allocates memory for this number of samples. It never shrinks.
  void reserve(const Dataset& dataset, std::size_t samples);

  // Fetches the samples of `indices` piece by piece; reserve() must have been called for as many. Returns early with
  // the samples fetched so far once `stop` is true. Throws what the data set throws.
  Batch fill(const Dataset& dataset, std::span<const int64_t> indices, int64_t epoch, const std::atomic<bool>& stop);

 private:
  using Memory = std::shared_ptr<std::byte>;
  Memory allocate(const Field& field, std::size_t samples) const;

  MemorySource source_;
  Memory inputs_;
  Memory targets_;
  std::size_t samples_ = 0;
};

}  // namespace ddprun::data
