// Vectors are sent in segments, so that one is reduced while the next one is in transit.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ddprun/plugin/comm_plugin.hpp"
#include "ddprun/plugin/topology.hpp"

namespace ddprun::gloo_backend {

// `count` elements in segments; offsets and lengths in bytes.
class Segments {
 public:
  Segments(uint64_t count, DType dtype) : element_(size_of(dtype)), count_(count) {
    const uint64_t largest = kBytes / element_;
    number_ = static_cast<int>(std::max<uint64_t>((count + largest - 1) / largest, 1));
  }
  int number() const { return number_; }
  topology::Block bytes(int index) const {
    const auto block = topology::block(count_, number_, index);
    return {block.offset * element_, block.length * element_};
  }
  uint64_t elements(int index) const { return topology::block(count_, number_, index).length; }
  // Longest segment in bytes.
  uint64_t longest() const { return bytes(0).length; }

 private:
  static constexpr uint64_t kBytes = 512 * 1024;
  uint64_t element_;
  uint64_t count_;
  int number_;
};

// Slot prefixes of this plugin's own algorithms; Gloo's collectives use 1 to 8.
constexpr uint8_t kTreeUp = 0x21, kTreeDown = 0x22, kRingReduceScatter = 0x23, kHalving = 0x24, kDoubling = 0x25;

}  // namespace ddprun::gloo_backend
