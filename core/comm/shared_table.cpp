#include "comm/shared_table.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "ddprun/error.hpp"
#include "ddprun/plugin/futex.hpp"
#include "ddprun/plugin/host.hpp"

namespace ddprun::comm {
namespace {

[[noreturn]] void fail(const std::string& path, int error) {
  throw Error(ExitCode::rendezvous, "fingerprint table " + path + ": " + std::strerror(error));
}

// Gives the file its size. All ranks do: reserving the same range twice is harmless, and with the blocks reserved a
// full disk is an error here and not a SIGBUS later.
void reserve(int descriptor, const std::string& path, std::size_t bytes) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail(path, errno);
  const auto found = static_cast<std::size_t>(status.st_size);
  if (found != 0 && found != bytes) {
    throw Error(ExitCode::rendezvous, "fingerprint table " + path + ": made for " +
                                          std::to_string(found / sizeof(TableMember)) + " ranks, not for " +
                                          std::to_string(bytes / sizeof(TableMember)));
  }
  const int error = ::posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
  if (error != 0) fail(path, error);
}

}  // namespace

TableMemory::TableMemory(std::string path, int size) : path_(std::move(path)) {
  const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(TableMember);
  const UniqueFd file(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) fail(path_, errno);
  reserve(file.get(), path_, bytes);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) fail(path_, errno);
  members_ = {static_cast<TableMember*>(memory), static_cast<std::size_t>(size)};
}

TableMemory::~TableMemory() {
  ::munmap(members_.data(), members_.size_bytes());
}

std::shared_ptr<TableMemory> map_table(const std::string& path, int size) {
  return std::make_shared<TableMemory>(path, size);
}

namespace {

using Clock = std::chrono::steady_clock;

// The wait for a peer has three stages: it spins for some microseconds, for a peer that is about to come; it yields,
// for a peer that needs this core; it sleeps, for a peer that computes, in slices short enough to notice an abort or a
// death.
constexpr int kSpins = 100;
constexpr int kYields = 50;
constexpr std::chrono::milliseconds kSlice{20};

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

class SharedTable : public FingerprintExchange {
 public:
  SharedTable(std::shared_ptr<TableMemory> memory, int rank)
      : memory_(std::move(memory)),
        rank_(static_cast<std::size_t>(rank)),
        members_(memory_->members()),
        shapes_(members_.size()),
        watches_(members_.size()) {
    int32_t taken_by = 0;
    if (members_[rank_].pid.compare_exchange_strong(taken_by, ::getpid())) {
      members_[rank_].started = start_time(::getpid());
      return;
    }
    throw Error(ExitCode::rendezvous, "fingerprint table " + memory_->path() + ": rank " + std::to_string(rank) +
                                          " is taken by process " + std::to_string(taken_by));
  }
  ~SharedTable() override { leave(Presence::left); }

  std::span<const CallShape> exchange(const CallShape& mine, std::chrono::milliseconds deadline) override {
    const auto sequence = static_cast<uint32_t>(mine.number);
    publish(mine, sequence);
    const std::size_t ranks = members_.size();
    // Each starts with its neighbour, so that not all poll the same line.
    for (std::size_t i = 1; i < ranks; ++i) {
      const std::size_t peer = (rank_ + i) % ranks;
      TableSlot& slot = members_[peer].slots[sequence % 2];
      if (!meet_soon(slot, sequence)) wait_for(peer, slot, sequence, deadline);
      require_not_aborted();
      require_not_aborted(peer);
      shapes_[peer] = slot.shape;
    }
    shapes_[rank_] = mine;
    if (rank_ == 0 && !std::exchange(met_, true)) ::unlink(memory_->path().c_str());
    return shapes_;
  }

  void abort() noexcept override {
    aborted_ = true;
    leave(Presence::aborted);
  }

 private:
  static bool is_there(const TableSlot& slot, uint32_t sequence) {
    return slot.sequence.load(std::memory_order_acquire) == sequence;
  }

  void publish(const CallShape& mine, uint32_t sequence) {
    TableSlot& slot = members_[rank_].slots[sequence % 2];
    slot.shape = mine;
    // Sequentially consistent against wait_for: either it sees the number, or we see the sleeper.
    slot.sequence.store(sequence);
    if (slot.sleepers.load() > 0) futex_wake_all(slot.sequence);
  }

  static bool meet_soon(const TableSlot& slot, uint32_t sequence) {
    for (int i = 0; i < kSpins; ++i) {
      if (is_there(slot, sequence)) return true;
      pause_cpu();
    }
    for (int i = 0; i < kYields; ++i) {
      if (is_there(slot, sequence)) return true;
      ::sched_yield();
    }
    return false;
  }

  void wait_for(std::size_t peer, TableSlot& slot, uint32_t sequence, std::chrono::milliseconds deadline) {
    const auto end = Clock::now() + deadline;
    while (!is_there(slot, sequence)) {
      require_not_aborted();
      require_not_aborted(peer);
      require_coming(peer, slot, sequence);
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
      if (left.count() <= 0) {
        throw CommError(CommStatus::timeout, "timeout: rank " + std::to_string(peer) + " did not come within " +
                                                 std::to_string(deadline.count()) + " ms, " + progress_of(peer));
      }
      slot.sleepers.fetch_add(1);
      const uint32_t seen = slot.sequence.load();
      if (seen != sequence) futex_wait(slot.sequence, seen, std::min(left, kSlice));
      slot.sleepers.fetch_sub(1);
    }
  }

  // Throws if the peer will never come. What it showed before it left or ended still counts, so its going is read
  // first.
  void require_coming(std::size_t peer, const TableSlot& slot, uint32_t sequence) {
    const Presence presence = members_[peer].presence.load();
    const bool ended = has_ended(peer);
    if ((presence == Presence::here && !ended) || is_there(slot, sequence)) return;
    fail_for(peer, presence == Presence::here ? " has ended, " : " has left, ");
  }

  void require_not_aborted() const {
    if (aborted_) throw CommError(CommStatus::aborted, "aborted");
  }
  // A peer that has shown its fingerprint and then aborted will not take part in the collective.
  void require_not_aborted(std::size_t peer) const {
    if (members_[peer].presence.load() == Presence::aborted) fail_for(peer, " has aborted, ");
  }

  [[noreturn]] void fail_for(std::size_t peer, const char* what) const {
    throw CommError(CommStatus::peer_lost, "peer lost: rank " + std::to_string(peer) + " (process " +
                                               std::to_string(members_[peer].pid.load()) + ")" + what +
                                               progress_of(peer));
  }

  bool has_ended(std::size_t peer) {
    const pid_t pid = members_[peer].pid.load();
    if (watches_[peer].pid() != pid) watches_[peer] = ProcessWatch(pid, members_[peer].started.load());
    return watches_[peer].has_ended();
  }

  std::string progress_of(std::size_t peer) const {
    const auto& slots = members_[peer].slots;
    const uint32_t last = std::max(slots[0].sequence.load(), slots[1].sequence.load());
    return last == 0 ? "before its first collective" : "after collective " + std::to_string(last);
  }

  void leave(Presence how) noexcept {
    Presence here = Presence::here;
    members_[rank_].presence.compare_exchange_strong(here, how);
    for (TableSlot& slot : members_[rank_].slots) futex_wake_all(slot.sequence);
  }

  std::shared_ptr<TableMemory> memory_;
  std::size_t rank_;
  std::span<TableMember> members_;
  std::vector<CallShape> shapes_;
  std::vector<ProcessWatch> watches_;
  bool met_ = false;
  std::atomic<bool> aborted_ = false;
};

}  // namespace

std::unique_ptr<FingerprintExchange> shared_table(std::shared_ptr<TableMemory> table, int rank) {
  return std::make_unique<SharedTable>(std::move(table), rank);
}

}  // namespace ddprun::comm
