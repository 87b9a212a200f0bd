// Which accesses to device memory are ordered, and which race.
#include <algorithm>

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

// The block that holds the address; memory that came from elsewhere becomes one as it is first seen.
Block& block_of(std::uintptr_t begin, std::uintptr_t end, Stream stream) {
  auto& blocks = state().blocks;
  auto after = blocks.upper_bound(begin);
  if (after != blocks.begin() && std::prev(after)->second.end > begin) return std::prev(after)->second;
  return blocks.emplace(begin, Block{end, stream, {}, {}}).first->second;
}

}  // namespace

void access(Stream stream, const void* memory, std::size_t bytes, bool writes, const std::string& what) {
  if (bytes == 0) return;
  const Lock lock(state().mutex);
  const Clock& clock = state().stream(stream).clock;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const Access now{begin, begin + bytes, stream, clock.at(stream), writes, what};
  Block& block = block_of(now.begin, now.end, stream);
  for (const Access& before : block.accesses) {
    const bool overlap = before.begin < now.end && now.begin < before.end;
    if (!overlap || (!before.writes && !now.writes) || knows(clock, before)) continue;
    const std::string race = "race: " + text_of(now) + " is not ordered after " + text_of(before);
    state().note(race);
    throw Race(race);
  }
  // Whoever is ordered after this one is ordered after those that it covers.
  std::erase_if(block.accesses, [&](const Access& before) {
    const bool covered = now.begin <= before.begin && before.end <= now.end;
    return covered && knows(clock, before) && (now.writes || (before.stream == stream && !before.writes));
  });
  block.accesses.push_back(now);
}

void allocated(const void* memory, std::size_t bytes, Stream stream) {
  const Lock lock(state().mutex);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  state().blocks.insert_or_assign(begin, Block{begin + bytes, stream, {}, {}});
}

// A caching allocator gives the memory to whoever asks next on the stream that it came on, at once.
void freed(const void* memory) {
  const Lock lock(state().mutex);
  const auto found = state().blocks.find(reinterpret_cast<std::uintptr_t>(memory));
  if (found == state().blocks.end()) return;
  const Block& block = found->second;
  const Clock& clock = state().stream(block.stream).clock;
  for (const Access& before : block.accesses) {
    if (before.stream == block.stream || block.users.contains(before.stream) || knows(clock, before)) continue;
    const std::string race = "race: memory of " + name_of(block.stream) + " is given back before " + text_of(before) +
                             " is known to be done, and without record_stream";
    state().fail(race);
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
