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

Group::~Group() {
  leave(rank_);
}

template <class Body>
void Group::guarded(const char* name, const Body& body) {
  waiter_->begin(name);
  try {
    body();
  } catch (const CommError& failure) {
    const auto status = failure.status();
    const bool on_all_alike =
        status == CommStatus::mismatch || status == CommStatus::no_memory || status == CommStatus::unsupported;
    if (!on_all_alike) leave(waiter_->culprit() >= 0 ? waiter_->culprit() : rank_);
    throw;
  }
}

Algorithm Group::allreduce(const Collective& call, Algorithm asked) {
  Algorithm served = asked;
  guarded("allreduce", [&] { served = collectives_->allreduce(call, asked, *waiter_); });
  return served;
}

void Group::reduce_to_first(const Collective& call) {
  guarded("allreduce", [&] { collectives_->reduce_to_first(call, *waiter_); });
}

void Group::spread(void* data, uint64_t bytes, int root) {
  const auto index = std::find(ranks_.begin(), ranks_.end(), root) - ranks_.begin();
  guarded("allreduce", [&] { collectives_->broadcast(data, bytes, static_cast<std::size_t>(index), *waiter_); });
}

void Group::broadcast(const Collective& call) {
  const auto index = std::find(ranks_.begin(), ranks_.end(), call.root) - ranks_.begin();
  const uint64_t bytes = call.count * size_of(call.dtype);
  guarded("broadcast", [&] { collectives_->broadcast(call.recv, bytes, static_cast<std::size_t>(index), *waiter_); });
}

void Group::allgather(const Collective& call) {
  guarded("allgather", [&] { collectives_->allgather(call, *waiter_); });
}

void Group::reduce_scatter(const Collective& call) {
  guarded("reduce_scatter", [&] { collectives_->reduce_scatter(call, *waiter_); });
}

void Group::barrier() {
  guarded("barrier", [&] { collectives_->barrier_of_all(*waiter_); });
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

void Group::free(void* memory) noexcept {
  allocations_->free(memory);
}

void Group::abort() noexcept {
  waiter_->abort();
  leave(rank_);
}

// First the rank that a failed peer blames: the failed peer's own process may have ended since.
int Group::missing() const {
  int left = -1;
  for (std::size_t index = 0; index < areas_.size(); ++index) {
    if (index == me_ || areas_[index] == nullptr) continue;
    const int cause = areas_[index]->gone.load(std::memory_order_acquire) - 1;
    if (cause >= 0 && cause != rank_ && cause != ranks_[index]) return cause;
    if (cause >= 0) left = ranks_[index];
  }
  const int dead = liveness_.first_ended();
  return dead >= 0 ? dead : left;
}

void Group::leave(int cause) noexcept {
  if (segment_ == nullptr) return;
  int32_t stays = 0;
  reinterpret_cast<Area*>(segment_->data())->gone.compare_exchange_strong(stays, cause + 1, std::memory_order_acq_rel);
}

}  // namespace ddprun::shm
