// The memory that the ranks of one host share: for each rank a state and two slots for data.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "ddprun/plugin/host.hpp"

namespace shm_direct {

// Where a rank is in the stream of pieces; see Backend. Its own cache line: only this rank writes it.
struct alignas(64) RankState {
  std::atomic<int64_t> stage;
  std::atomic<uint32_t> left;  // 1: the rank takes part in nothing more
};

// Changes whenever a state does, for ranks that sleep.
struct alignas(64) Bell {
  std::atomic<uint32_t> rings;
  std::atomic<uint32_t> sleepers;
};
static_assert(std::atomic<int64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

class Segment {
 public:
  // Collective. Throws CommError: the ranks are not all on one host, or a rank cannot make or open the memory. Then all
  // ranks throw. slot_bytes is a multiple of 64.
  Segment(const ddprun::Host& host, std::size_t slot_bytes);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  RankState& state(int rank) const { return states()[rank]; }
  // Pieces use the two sets of slots by turns.
  std::byte* slot(int64_t piece, int rank) const {
    const auto index = static_cast<std::size_t>(piece % 2 * size_ + rank);
    return memory_ + header_bytes() + index * slot_bytes_;
  }

  void ring() const noexcept;
  uint32_t rings() const noexcept { return bell().rings.load(); }
  // Sleeps until the bell has rung more often than `seen`, at most a few milliseconds.
  void sleep(uint32_t seen) const noexcept;

  // Whether the process of a rank has ended. Not for ranks that are threads of this process.
  bool process_ended(int rank) const { return watches_[static_cast<std::size_t>(rank)].has_ended(); }

 private:
  Bell& bell() const { return *reinterpret_cast<Bell*>(memory_); }
  RankState* states() const { return reinterpret_cast<RankState*>(memory_ + sizeof(Bell)); }
  std::size_t header_bytes() const { return sizeof(Bell) + static_cast<std::size_t>(size_) * sizeof(RankState); }
  std::size_t bytes() const { return header_bytes() + 2 * static_cast<std::size_t>(size_) * slot_bytes_; }

  std::string make(int& descriptor) const;
  std::string map(const std::string& path);
  void watch(const std::vector<std::string>& cards);

  int size_;
  std::size_t slot_bytes_;
  std::byte* memory_ = nullptr;
  std::vector<ddprun::ProcessWatch> watches_;
};

}  // namespace shm_direct
