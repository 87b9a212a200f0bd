// Memory for messages in transit. Kept between collectives: page faults in new memory cost more than the reduction.
#pragma once

#include <cstddef>
#include <memory>

namespace ddprun::gloo_backend {

class Scratch {
 public:
  // At least `bytes` bytes, uninitialised, aligned for any dtype; valid until the next call. Throws std::bad_alloc.
  std::byte* of_size(std::size_t bytes) {
    if (bytes > size_) {
      memory_.reset();
      size_ = 0;
      memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      size_ = bytes;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t size_ = 0;
};

}  // namespace ddprun::gloo_backend
