// Buffers that all ranks of a host map, and the translation of a pointer to the peers' pointers.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "shm/segment.hpp"

namespace ddprun::shm {

// Where a vector is: the allocation of its rank, and the offset in it. A collective alloc() has the same number on all
// ranks.
struct Location {
  static constexpr uint64_t kNowhere = ~uint64_t{0};
  uint64_t allocation = kNowhere;
  uint64_t offset = 0;
  bool is_somewhere() const noexcept { return allocation != kNowhere; }
};

// Of a call's two vectors.
struct Locations {
  Location send, recv;
  bool are_somewhere() const noexcept { return send.is_somewhere() && recv.is_somewhere(); }
};

// Memory that several ranks map, as Collectives uses it.
class SharedMemory {
 public:
  // Where this rank's `bytes` bytes at `data` are; nowhere, unless all are within one allocation.
  virtual Location find(const void* data, uint64_t bytes) const noexcept = 0;
  // This rank's pointer to the memory that the rank at index `member` of the group found at `location`.
  virtual std::byte* at(std::size_t member, const Location& location) const noexcept = 0;

 protected:
  ~SharedMemory() = default;
};

class Allocations final : public SharedMemory {
 public:
  // Gathers `bytes` bytes of each rank of the host, in rank order.
  using Gather = std::function<void(const void* mine, std::size_t bytes, void* all)>;

  // For `members` ranks of this host that map one another's memory; this rank is at index `me`.
  Allocations(std::size_t members, std::size_t me) : members_(members), me_(me) {}

  // Collective. Throws CommError: CommStatus::no_memory on all ranks if one of them has none, CommStatus::mismatch if
  // they request different sizes, and what gather throws.
  void* alloc(uint64_t bytes, const Gather& gather);
  // Local. The peers' memory of the same alloc() stays mapped until the peers free it too and this rank calls again.
  void free(void* memory) noexcept;

  Location find(const void* data, uint64_t bytes) const noexcept override;
  std::byte* at(std::size_t member, const Location& location) const noexcept override;

 private:
  // Follows each rank's memory, in a separate page.
  struct Footer {
    std::atomic<uint32_t> freed{0};
  };
  struct Entry {
    uint64_t number;
    uint64_t bytes;                // without the footer
    std::unique_ptr<Segment> own;  // null once freed
    std::vector<Mapping> peers;    // by member; empty for this rank, and once the peer has freed it
  };

  // Throws CommError.
  void map_peers(const std::vector<SegmentKey>& keys, Entry& entry) const;
  void drop_freed() noexcept;

  const std::size_t members_;
  const std::size_t me_;
  uint64_t next_ = 0;
  mutable std::mutex mutex_;    // of entries_: free() is called from any thread
  std::vector<Entry> entries_;  // ascending numbers
};

}  // namespace ddprun::shm
