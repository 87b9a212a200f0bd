#include "shm/allocation.hpp"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <optional>
#include <string>

#include "ddprun/plugin/comm_plugin.hpp"
#include "host/liveness.hpp"

namespace ddprun::shm {

void* Allocations::alloc(uint64_t bytes, const Gather& gather) {
  {
    const std::lock_guard lock(mutex_);
    drop_freed();
  }
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  Entry entry = {next_, 0, nullptr, std::vector<Mapping>(members_)};
  std::optional<CommError> failure;
  SegmentKey key;
  try {
    // Unchecked, the system would give pages until it kills a process.
    if (bytes > host::available_memory() / members_) {
      throw CommError(CommStatus::no_memory, "alloc: the system has no memory for " + std::to_string(bytes) +
                                                 " bytes on each of " + std::to_string(members_) + " ranks");
    }
    entry.bytes = (bytes + page - 1) / page * page;
    entry.own = std::make_unique<Segment>(entry.bytes + page);
    new (entry.own->data() + entry.bytes) Footer;
    key = entry.own->key();
  } catch (const CommError& caught) {
    failure = caught;
  }
  std::vector<SegmentKey> keys(members_);
  gather(&key, sizeof key, keys.data());
  try {
    if (!failure) map_peers(keys, entry);
  } catch (const CommError& caught) {
    failure = caught;
  }
  const CommStatus mine = failure ? failure->status() : CommStatus::ok;
  std::vector<CommStatus> all(members_);
  gather(&mine, sizeof mine, all.data());
  if (failure) throw *failure;
  for (const CommStatus status : all) {
    if (status != CommStatus::ok)
      throw CommError(status, "alloc: a peer cannot share " + std::to_string(bytes) + " bytes");
  }
  entry.own->seal();
  ++next_;
  const std::lock_guard lock(mutex_);
  return entries_.emplace_back(std::move(entry)).own->data();
}

void Allocations::map_peers(const std::vector<SegmentKey>& keys, Entry& entry) const {
  for (std::size_t member = 0; member < members_; ++member) {
    if (member == me_) continue;
    if (keys[member].length == 0) throw CommError(CommStatus::no_memory, "alloc: a peer has no memory left");
    if (keys[member].length != keys[me_].length) {
      throw CommError(CommStatus::mismatch, "alloc: the ranks request different sizes");
    }
    entry.peers[member] = Mapping(keys[member]);
  }
}

void Allocations::free(void* memory) noexcept {
  const std::lock_guard lock(mutex_);
  for (auto& entry : entries_) {
    if (entry.own == nullptr || entry.own->data() != memory) continue;
    reinterpret_cast<Footer*>(entry.own->data() + entry.bytes)->freed.store(1, std::memory_order_release);
    entry.own.reset();
  }
  drop_freed();
}

void Allocations::drop_freed() noexcept {
  std::erase_if(entries_, [](Entry& entry) {
    bool needed = entry.own != nullptr;
    for (auto& peer : entry.peers) {
      if (peer.data() == nullptr) continue;
      const auto* footer = reinterpret_cast<const Footer*>(peer.data() + entry.bytes);
      if (footer->freed.load(std::memory_order_acquire) != 0) {
        peer = Mapping();
      } else {
        needed = true;
      }
    }
    return !needed;
  });
}

Location Allocations::find(const void* data, uint64_t bytes) const noexcept {
  const auto address = reinterpret_cast<uintptr_t>(data);
  const std::lock_guard lock(mutex_);
  for (const auto& entry : entries_) {
    if (entry.own == nullptr) continue;
    const uint64_t offset = address - reinterpret_cast<uintptr_t>(entry.own->data());  // huge if data is before it
    if (offset < entry.bytes && bytes <= entry.bytes - offset) return {entry.number, offset};
  }
  return {};
}

std::byte* Allocations::at(std::size_t member, const Location& location) const noexcept {
  const std::lock_guard lock(mutex_);
  const auto entry = std::ranges::lower_bound(entries_, location.allocation, {}, &Entry::number);
  return (member == me_ ? entry->own->data() : entry->peers[member].data()) + location.offset;
}

}  // namespace ddprun::shm
