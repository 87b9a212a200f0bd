// Memory of one rank that the other ranks of its host map: a memfd. It never has a name in a folder, and the kernel
// frees it with the last process that maps it, however that process ends.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ddprun::shm {

// What a peer needs to map a segment; plain bytes that are sent as they are.
struct SegmentKey {
  int64_t pid = 0;  // of its owner
  int64_t descriptor = -1;
  uint64_t device = 0, inode = 0;  // to detect a later file with the same descriptor
  uint64_t length = 0;             // 0: there is no segment
};

// Owns the memory: page-aligned, zero, all pages allocated from the start.
class Segment {
 public:
  // Throws CommError(CommStatus::no_memory).
  explicit Segment(uint64_t length);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  std::byte* data() const noexcept { return data_; }
  SegmentKey key() const;
  // Closes the descriptor: from now on no other process can map the segment.
  void seal() noexcept;

 private:
  int descriptor_ = -1;
  std::byte* data_ = nullptr;
  uint64_t length_;
};

// A peer's segment in our address space; valid even after its owner has ended.
class Mapping {
 public:
  Mapping() = default;  // empty
  // Throws CommError(CommStatus::no_memory) if the segment cannot be mapped.
  explicit Mapping(const SegmentKey& key);
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;

  std::byte* data() const noexcept { return data_; }  // null if empty

 private:
  std::byte* data_ = nullptr;
  uint64_t length_ = 0;
};

}  // namespace ddprun::shm
