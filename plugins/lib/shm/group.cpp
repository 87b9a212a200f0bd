#include "shm/group.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace ddprun::shm {

Group::Group(const Host& host, const std::vector<host::Process>& processes)
    : rank_(host.rank()), liveness_(processes, host.rank()) {
  for (int rank = 0; rank < host.size(); ++rank) {
    if (rank == rank_) me_ = ranks_.size();
    if (rank == rank_ || host::share_host(processes[rank], processes[rank_])) ranks_.push_back(rank);
  }
  waiter_.emplace(host, static_cast<int>(ranks_.size()), Poll::memory, [this] { return missing(); });
  SegmentKey mine;
  try {
    segment_ = std::make_unique<Segment>(sizeof(Area));
    new (segment_->data()) Area;
    mine = segment_->key();
  } catch (const CommError& failure) {
    why_not_ = failure.what();
  }
  std::vector<SegmentKey> areas(static_cast<std::size_t>(host.size()));
  host.allgather(&mine, sizeof mine, areas.data());
  try {
    if (why_not_.empty()) connect(areas);
  } catch (const CommError& failure) {
    why_not_ = failure.what();
  }
  for (const auto& why : host.allgather(why_not_)) {
    if (why_not_.empty()) why_not_ = why;
  }
  if (segment_ != nullptr) segment_->seal();
  // If memory is not shared, allocations belong to this rank only.
  allocations_ = is_usable() ? std::make_unique<Allocations>(ranks_.size(), me_) : std::make_unique<Allocations>(1, 0);
  if (is_usable()) collectives_ = std::make_unique<Collectives>(me_, ranks_, areas_, *allocations_);
}

void Group::connect(const std::vector<SegmentKey>& areas) {
  mappings_.resize(ranks_.size());
  areas_.resize(ranks_.size());
  for (std::size_t index = 0; index < ranks_.size(); ++index) {
    const auto& area = areas[static_cast<std::size_t>(ranks_[index])];
    if (area.length == 0)
      throw CommError(CommStatus::no_memory, "rank " + std::to_string(ranks_[index]) + " has no shared memory");
    if (index != me_) mappings_[index] = Mapping(area);
    areas_[index] = reinterpret_cast<Area*>(index == me_ ? segment_->data() : mappings_[index].data());
  }
}

void* Group::alloc(uint64_t bytes) {
  void* memory = nullptr;
  guarded("alloc", [&] {
    memory = allocations_->alloc(bytes, [&](const void* mine, std::size_t size, void* all) {
      if (is_usable()) return collectives_->exchange(mine, size, all, *waiter_);
      std::copy_n(static_cast<const std::byte*>(mine), size, static_cast<std::byte*>(all));
    });
  });
  return memory;
}

void Group::abort() noexcept {
  waiter_->abort();
  leave(rank_);
}

// First the rank that a failed peer blames: the failed peer's own process may have ended since.
int Group::missing() const {
  const int awaited = collectives_ != nullptr ? collectives_->awaited() : -1;
  int left = -1;
  for (std::size_t index = 0; index < areas_.size(); ++index) {
    if (index == me_ || areas_[index] == nullptr) continue;
    const int cause = areas_[index]->gone.load(std::memory_order_acquire) - 1;
    if (cause >= 0 && cause != rank_ && cause != ranks_[index]) return cause;
    if (cause >= 0 && (awaited < 0 || awaited == ranks_[index])) left = ranks_[index];
  }
  const int dead = awaited < 0 ? liveness_.first_ended() : liveness_.has_ended(awaited) ? awaited : -1;
  return dead >= 0 ? dead : left;
}

void Group::leave(int cause) noexcept {
  if (segment_ == nullptr) return;
  int32_t stays = 0;
  reinterpret_cast<Area*>(segment_->data())->gone.compare_exchange_strong(stays, cause + 1, std::memory_order_acq_rel);
}

}  // namespace ddprun::shm
