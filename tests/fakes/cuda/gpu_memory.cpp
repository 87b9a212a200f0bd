// Which accesses to device memory are ordered, and which race.
#include <algorithm>
#include <utility>

#include "gpu_state.hpp"

namespace ddprun::fake_gpu {
namespace {

bool knows(const Clock& clock, const Access& access) {
  const auto known = clock.find(access.stream);
  return known != clock.end() && known->second >= access.piece;
}

std::string text_of(const Access& access) {
  return access.what + (access.writes ? " (writes" : " (reads") + " on " + name_of(access.stream) + ")";
}

std::shared_ptr<void> at_last(std::function<void()> action) {
  return {nullptr, [action = std::move(action)](void*) { action(); }};
}

// A caching allocator reuses the memory immediately for the next allocation on the same stream.
void check_given_back(const Block& block, const Clock& clock) {
  for (const Access& before : block.accesses) {
    if (before.stream == block.stream || block.users.contains(before.stream) || knows(clock, before)) continue;
    const std::string race = "race: memory of " + name_of(block.stream) + " is given back before " + text_of(before) +
                             " is known to be done, and without record_stream";
    state().fail(race);
  }
}

}  // namespace

void order(std::vector<Access>& accesses, Access now, const Clock& clock) {
  for (const Access& before : accesses) {
    const bool overlap = before.begin < now.end && now.begin < before.end;
    if (!overlap || (!before.writes && !now.writes) || knows(clock, before)) continue;
    const std::string race = "race: " + text_of(now) + " is not ordered after " + text_of(before);
    state().note(race);
    throw Race(race);
  }
  // An access that is ordered after this one is also ordered after those that it covers.
  std::erase_if(accesses, [&](const Access& before) {
    const bool covered = now.begin <= before.begin && before.end <= now.end;
    return covered && knows(clock, before) && (now.writes || (before.stream == now.stream && !before.writes));
  });
  accesses.push_back(std::move(now));
}

void access(Stream stream, const void* memory, std::size_t bytes, bool writes, const std::string& what) {
  if (bytes == 0) return;
  const Lock lock(state().mutex);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t end = begin + bytes;
  Block* const known = state().block_at(begin);
  // Memory from another allocator becomes a block on its first use.
  Block& block = known != nullptr ? *known : state().add_block(begin, end, stream);
  const Clock& clock = state().stream(stream).clock;
  order(block.accesses, {begin, end, stream, clock.at(stream), writes, what}, clock);
}

void allocated(const void* memory, std::size_t bytes, Stream stream) {
  const Lock lock(state().mutex);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  state().add_block(begin, begin + bytes, stream);
}

void freed(const void* memory, std::function<void()> release) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  // Destroyed without the lock.
  std::shared_ptr<void> last = at_last(std::move(release));
  const Lock lock(state().mutex);
  const auto found = state().blocks.find(begin);
  if (found == state().blocks.end()) return;
  const Block& block = found->second;
  check_given_back(block, state().stream(block.stream).clock);
  for (const Access& before : block.accesses) {
    for (const auto& work : state().stream(before.stream).pending) work->memory.push_back(last);
  }
  state().blocks.erase(found);
}

void fail(const std::string& race) {
  const Lock lock(state().mutex);
  state().fail(race);
}

void used_on(const void* memory, Stream stream) {
  const Lock lock(state().mutex);
  const auto found = state().blocks.find(reinterpret_cast<std::uintptr_t>(memory));
  if (found != state().blocks.end()) found->second.users.insert(stream);
}

}  // namespace ddprun::fake_gpu
