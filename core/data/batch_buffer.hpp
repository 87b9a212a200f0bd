// The memory of one batch, taken once and used for many. Private to the room.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

#include "data/loader.hpp"
#include "ddprun/dataset_plugin.hpp"

namespace ddprun::data {

// One thread at a time.
class BatchBuffer {
 public:
  // Makes room for so many samples. Memory only grows.
  void reserve(const Dataset& dataset, std::size_t samples);

  // Fetches the samples of `indices`, for which there must be room, a piece at a time; returns early, with what it has,
  // once `stop` is true. Throws what the data set throws.
  Batch fill(const Dataset& dataset, std::span<const int64_t> indices, int64_t epoch, const std::atomic<bool>& stop);

 private:
  static constexpr std::align_val_t alignment{64};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, alignment); }
  };
  using Memory = std::unique_ptr<std::byte, Free>;

  static Memory allocate(const Field& field, std::size_t samples);

  Memory inputs_;
  Memory targets_;
  std::size_t samples_ = 0;
};

}  // namespace ddprun::data
