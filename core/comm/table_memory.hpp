// The layout of a table in shared memory. Internal to shared_table.cpp and table_memory.cpp.
#pragma once

#include <atomic>
#include <span>
#include <string>

#include "comm/fingerprint.hpp"
#include "comm/shared_table.hpp"

namespace ddprun::comm {

// A fingerprint and the number that says which collective it is of, in one cache line: a peer that polls the number has
// fetched the fingerprint with it.
struct alignas(64) TableSlot {
  std::atomic<uint32_t> sequence;  // written last, released; the futex word
  std::atomic<uint32_t> sleepers;  // how many wait on it in the kernel
  Fingerprint print;
};
static_assert(sizeof(TableSlot) == 64 && std::atomic<uint32_t>::is_always_lock_free);

enum class Presence : uint32_t { here, left, aborted };

// One rank's part. The slots are used alternately. Two are enough: a rank writes number n only after all have shown n -
// 1, and they showed that only after they had read n - 2, whose slot n takes.
struct TableMember {
  TableSlot slots[2];
  alignas(64) std::atomic<int32_t> pid;  // 0: not here yet
  std::atomic<uint64_t> started;         // of that process: start_time(); 0: not known yet
  std::atomic<Presence> presence;
};

class TableMemory {
 public:
  TableMemory(std::string path, int size);
  ~TableMemory();
  TableMemory(const TableMemory&) = delete;
  TableMemory& operator=(const TableMemory&) = delete;

  std::span<TableMember> members() const { return members_; }
  const std::string& path() const { return path_; }
  void remove_file() const noexcept;

 private:
  std::string path_;
  std::span<TableMember> members_;  // all zero at first, which is a valid table
};

}  // namespace ddprun::comm
