// The memory of one batch, taken once and used for many. Private to the module.
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

// One thread at a time.
class BatchBuffer {
 public:
  // Empty: ordinary memory.
  explicit BatchBuffer(MemorySource source) : source_(std::move(source)) {}

  // Makes room for so many samples. Memory only grows.
  void reserve(const Dataset& dataset, std::size_t samples);

  // Fetches the samples of `indices`, for which there must be room, a piece at a time; returns early, with what it has,
  // once `stop` is true. Throws what the data set throws.
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
