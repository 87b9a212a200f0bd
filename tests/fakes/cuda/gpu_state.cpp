#include "gpu_state.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace ddprun::fake_gpu {

// Never destroyed: memory is freed until the process ends.
State& state() {
  static auto* const one = new State;
  return *one;
}

void merge(Clock& into, const Clock& other) {
  for (const auto& [stream, piece] : other) into[stream] = std::max(into[stream], piece);
}

bool all_done(const Works& works) {
  return std::all_of(works.begin(), works.end(), [](const auto& work) { return work->is_done; });
}

Time Event::end() const {
  Time last = time;
  for (const auto& work : after) last = std::max(last, work->end);
  return last;
}

StreamState& State::stream(Stream stream) {
  StreamState& one = streams[stream];
  merge(one.clock, host);
  std::erase_if(one.pending, [](const auto& work) { return work->is_done; });
  return one;
}

void State::wait(Lock& lock, const Works& works) {
  const Works all = works;  // the list may change meanwhile
  changed.wait(lock, [&] { return all_done(all); });
}

void State::wait(Lock& lock, Works& works) {
  wait(lock, std::as_const(works));
  std::erase_if(works, [](const auto& work) { return work->is_done; });
}

std::vector<std::function<void()>> State::host_knows(const Clock& clock) {
  merge(host, clock);
  std::vector<std::function<void()>> actions;
  for (auto& [stream, one] : streams) {
    const auto known = host.find(stream);
    const std::uint64_t until = known == host.end() ? 0 : known->second;
    auto& unknown = one.unknown;
    const auto first = std::find_if(unknown.begin(), unknown.end(), [&](const auto& end) { return end.piece > until; });
    for (auto end = unknown.begin(); end != first; ++end) actions.push_back(std::move(end->action));
    unknown.erase(unknown.begin(), first);
  }
  return actions;
}

void State::note(const std::string& line) {
  record += line + "\n";
  const char* const path = std::getenv("DDPRUN_FAKE_GPU_LOG");
  if (path == nullptr) return;
  static std::FILE* file = nullptr;
  static pid_t writer = 0;
  if (writer != getpid()) {  // a forked rank has its own file
    file = std::fopen((std::string(path) + "." + std::to_string(getpid())).c_str(), "w");
    writer = getpid();
  }
  if (file == nullptr) return;
  std::fprintf(file, "%s\n", line.c_str());
  std::fflush(file);
}

Block* State::block_at(std::uintptr_t address) {
  const auto after = blocks.upper_bound(address);
  if (after == blocks.begin() || std::prev(after)->second.end <= address) return nullptr;
  return &std::prev(after)->second;
}

Block& State::add_block(std::uintptr_t begin, std::uintptr_t end, Stream stream) {
  return blocks.insert_or_assign(begin, Block{end, stream, {}, {}}).first->second;
}

void State::fail(const std::string& race) {
  note(race);
  if (fault.empty()) fault = race;
}

}  // namespace ddprun::fake_gpu
