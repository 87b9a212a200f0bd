#include "shm/group.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "host/identity.hpp"

namespace ddprun::shm {

// What a rank tells the others as it joins.
struct Group::Hello {
  std::array<char, 104> host{};  // host::identity(), with its final 0
  SegmentKey area;
};

Group::Group(const Host& host, const std::string& forbidden, std::function<int()> lost)
    : rank_(host.rank()), why_not_(forbidden) {
  Hello mine;
  const std::string identity = host::identity();
  identity.copy(mine.host.data(), mine.host.size() - 1);
  try {
    if (why_not_.empty()) segment_ = std::make_unique<Segment>(sizeof(Area));
  } catch (const CommError& failure) {
    why_not_ = failure.what();
  }
  if (segment_ != nullptr) {
    new (segment_->data()) Area;
    mine.area = segment_->key();
  }
  std::vector<Hello> all(static_cast<std::size_t>(host.size()));
  host.allgather(&mine, sizeof mine, all.data());
  find_hosts(all);
  waiter_.emplace(host, static_cast<int>(ranks_.size()), [this, lost = std::move(lost)] { return missing(lost); });
  try {
    if (why_not_.empty()) connect(all);
  } catch (const CommError& failure) {
    why_not_ = failure.what();
  }
  for (const auto& why : host.allgather(why_not_)) {
    if (why_not_.empty()) why_not_ = why;
  }
  if (segment_ != nullptr) segment_->seal();
  // Where memory is not shared, what is allocated is this rank's alone.
  allocations_ = is_usable() ? std::make_unique<Allocations>(ranks_.size(), me_) : std::make_unique<Allocations>(1, 0);
  if (is_usable()) collectives_ = std::make_unique<Collectives>(me_, ranks_, areas_, *allocations_);
}

void Group::find_hosts(const std::vector<Hello>& hellos) {
  // A rank that cannot tell its host has one of its own.
  const auto share_host = [&](int a, int b) {
    return a == b || (hellos[a].host[0] != 0 && hellos[a].host == hellos[b].host);
  };
  for (int rank = 0; rank < static_cast<int>(hellos.size()); ++rank) {
    if (rank == rank_) me_ = ranks_.size();
    if (share_host(rank, rank_)) ranks_.push_back(rank);
    const auto leads = [&](int leader) { return share_host(leader, rank); };
    if (std::none_of(leaders_.begin(), leaders_.end(), leads)) leaders_.push_back(rank);
  }
}

void Group::connect(const std::vector<Hello>& hellos) {
  mappings_.resize(ranks_.size());
  areas_.resize(ranks_.size());
  for (std::size_t place = 0; place < ranks_.size(); ++place) {
    const auto& area = hellos[static_cast<std::size_t>(ranks_[place])].area;
    if (area.length == 0) throw CommError(CommStatus::no_memory, "rank " + std::to_string(ranks_[place]) + " shares none");
    if (place != me_) mappings_[place] = Mapping(area);
    areas_[place] = reinterpret_cast<Area*>(place == me_ ? segment_->data() : mappings_[place].data());
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
    if (failure.status() != CommStatus::mismatch && failure.status() != CommStatus::no_memory) {
      leave(waiter_->culprit() >= 0 ? waiter_->culprit() : rank_);
    }
    throw;
  }
}

void Group::allreduce(const Collective& call) {
  guarded("allreduce", [&] { collectives_->allreduce(call, *waiter_); });
}

void Group::spread(void* data, uint64_t bytes, int root) {
  const auto place = std::find(ranks_.begin(), ranks_.end(), root) - ranks_.begin();
  guarded("allreduce", [&] { collectives_->broadcast(data, bytes, static_cast<std::size_t>(place), *waiter_); });
}

void Group::broadcast(const Collective& call) {
  const auto place = std::find(ranks_.begin(), ranks_.end(), call.root) - ranks_.begin();
  const uint64_t bytes = call.count * size_of(call.dtype);
  guarded("broadcast", [&] { collectives_->broadcast(call.recv, bytes, static_cast<std::size_t>(place), *waiter_); });
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

// Whom a peer that gave up blames comes first: the peer's own process may have ended since.
int Group::missing(const std::function<int()>& lost) const {
  int left = -1;
  for (std::size_t place = 0; place < areas_.size(); ++place) {
    if (place == me_ || areas_[place] == nullptr) continue;
    const int cause = areas_[place]->gone.load(std::memory_order_acquire) - 1;
    if (cause >= 0 && cause != rank_ && cause != ranks_[place]) return cause;
    if (cause >= 0) left = ranks_[place];
  }
  const int dead = lost();
  return dead >= 0 ? dead : left;
}

void Group::leave(int cause) noexcept {
  if (segment_ == nullptr) return;
  int32_t stays = 0;
  reinterpret_cast<Area*>(segment_->data())->gone.compare_exchange_strong(stays, cause + 1, std::memory_order_acq_rel);
}

}  // namespace ddprun::shm
