#include "data/batch_buffer.hpp"

#include <algorithm>
#include <limits>
#include <new>

#include "ddprun/error.hpp"

namespace ddprun::data {

void BatchBuffer::reserve(const Dataset& dataset, std::size_t samples) {
  if (inputs_ && samples <= samples_) return;
  inputs_ = allocate(dataset.input(), samples);
  targets_ = allocate(dataset.target(), samples);
  samples_ = samples;
}

Batch BatchBuffer::fill(const Dataset& dataset, std::span<const int64_t> indices, int64_t epoch,
                        const std::atomic<bool>& stop) {
  constexpr std::size_t piece_bytes = 64 * 1024;
  const std::size_t input_bytes = dataset.input().bytes();
  const std::size_t target_bytes = dataset.target().bytes();
  const std::size_t piece = std::max<std::size_t>(1, piece_bytes / (input_bytes + target_bytes));
  for (std::size_t at = 0; at < indices.size() && !stop.load(std::memory_order_relaxed); at += piece) {
    const auto part = indices.subspan(at, std::min(piece, indices.size() - at));
    dataset.fetch(part, epoch, inputs_.get() + at * input_bytes, targets_.get() + at * target_bytes);
  }
  return {static_cast<int64_t>(indices.size()), inputs_.get(), targets_.get()};
}

BatchBuffer::Memory BatchBuffer::allocate(const Field& field, std::size_t samples) const {
  const std::size_t bytes = field.bytes();
  if (bytes > 0 && samples > std::numeric_limits<std::ptrdiff_t>::max() / bytes) {
    throw Error(ExitCode::failure, "a batch of " + std::to_string(samples) + " samples is larger than memory can be");
  }
  const std::size_t size = std::max<std::size_t>(1, samples * bytes);
  if (source_) return source_(size);
  constexpr std::align_val_t alignment{64};
  return {static_cast<std::byte*>(::operator new(size, alignment)),
          [](std::byte* memory) { ::operator delete(memory, alignment); }};
}

}  // namespace ddprun::data
