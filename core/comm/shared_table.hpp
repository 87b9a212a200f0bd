// The fingerprint exchange of ranks on one host: a small file that all of them map, about a microsecond when the peers
// are there already.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "comm/fingerprint.hpp"

namespace ddprun::comm {

// A fingerprint and the number that says which collective it is of, in one cache line: a peer that polls the number has
// fetched the fingerprint with it.
struct alignas(64) TableSlot {
  std::atomic<uint32_t> sequence;  // written last, released; the futex word
  std::atomic<uint32_t> sleepers;  // how many wait on it in the kernel
  CallShape shape;
};
static_assert(sizeof(TableSlot) == 64 && std::atomic<uint32_t>::is_always_lock_free);

enum class Presence : uint32_t { here, left, aborted };

// One rank's part. The rank uses its two slots alternately. Two are enough: a rank writes n only after every rank has
// shown n - 1. A rank shows n - 1 only after it has read n - 2, so the slot of n - 2 is free for n.
struct TableMember {
  TableSlot slots[2];
  alignas(64) std::atomic<int32_t> pid;  // 0: not here yet
  std::atomic<uint64_t> started;         // of that process: start_time(); 0: not known yet
  std::atomic<Presence> presence;
};

// The mapping; ranks that are threads of one process may share it.
class TableMemory {
 public:
  TableMemory(std::string path, int size);
  ~TableMemory();
  TableMemory(const TableMemory&) = delete;
  TableMemory& operator=(const TableMemory&) = delete;

  std::span<TableMember> members() const { return members_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::span<TableMember> members_;  // all zero at first, which is a valid table
};

// Opens the table, or makes it if this rank is the first. `path` names a file that no other communicator of the job
// uses, in a folder that only this user can enter. It is removed once all ranks have met. Throws Error(rendezvous) when
// it cannot be made, or was made for another number of ranks.
std::shared_ptr<TableMemory> map_table(const std::string& path, int size);

// Takes the place of `rank` on the table. Throws Error(rendezvous) when it is taken. In an exchange, a peer whose
// process has ended, or which has destroyed or aborted its exchange, is named within a few hundredths of a second.
std::unique_ptr<FingerprintExchange> shared_table(std::shared_ptr<TableMemory> table, int rank);

}  // namespace ddprun::comm
