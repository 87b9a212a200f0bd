// Used by the correct fakes: anonymous memory that every rank maps, with a slot for each rank and a barrier. It has no
// name outside /proc, so nothing is left after a test.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"

namespace fakes {

constexpr std::size_t kSlotBytes = 512 * 1024, kLaneBytes = 64 * 1024;

class SharedSlots {
 public:
  // Collective: rank 0 creates the memory, all ranks map it. Throws ddprun::CommError.
  explicit SharedSlots(const ddprun::Host& host);
  ~SharedSlots();
  SharedSlots(const SharedSlots&) = delete;
  SharedSlots& operator=(const SharedSlots&) = delete;

  std::byte* slot(int rank) const;
  // Barrier. Throws ddprun::CommError: timeout, peer lost (named), aborted.
  void meet();
  void abort() noexcept { aborted_.store(true); }
  // A piece of at most kLaneBytes from this rank to another one, or from that one. put() waits until that rank has
  // taken the piece before, and for nobody else. They throw as meet().
  void put(int to, const void* data, std::size_t bytes);
  void take(int from, void* data, std::size_t bytes);

 private:
  struct Head;
  struct Lane;
  void map(int descriptor);
  template <class Ready>
  void wait_until(Ready ready);
  Lane& lane(int from, int to) const;
  void require_peers() const;

  ddprun::Host host_;
  std::size_t bytes_;
  Head* head_ = nullptr;
  std::vector<int> peers_;  // pidfds, readable once the process has ended
  std::atomic<bool> aborted_{false};
};

}  // namespace fakes
