// A test of comm_nccl in a separate process, because NCCL keeps its settings for the life of a process. The fake
// libraries are loaded before the plugin looks for the real ones.
#pragma once

#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "comm/plugin_backend.hpp"
#include "fakes/cuda/fake.hpp"
#include "plugin/registry.hpp"
#include "support/error_of.hpp"
#include "testing/ranks.hpp"

namespace ddprun::testing {

// The fake libraries of this process, on a machine with four GPUs.
inline Fake& fake() {
  setenv("DDPRUN_FAKE_GPUS", "4", 1);
  for (const char* const path : {DDPRUN_FAKE_CUDART, DDPRUN_FAKE_NCCL}) {
    if (dlopen(path, RTLD_NOW | RTLD_GLOBAL) == nullptr) throw std::runtime_error(dlerror());
  }
  void* const state = dlsym(RTLD_DEFAULT, "ddprun_fake");
  if (state == nullptr) throw std::runtime_error("no ddprun_fake");
  return *reinterpret_cast<decltype(&ddprun_fake)>(state)();
}

inline const ddprun_comm_plugin& nccl() {
  return *plugin::Registry({}).comm(DDPRUN_NCCL).table;
}

// Rank 0 of `size`; the others repeat what it says, each with its own GPU.
inline comm::JoinOptions options_of(int size = 1) {
  comm::JoinOptions options{.rank = 0, .size = size, .device = 0, .deadline = std::chrono::seconds(20)};
  options.allgather = [size](std::string_view mine) {
    std::vector<std::string> all(static_cast<std::size_t>(size), std::string(mine));
    if (!mine.starts_with("0000:")) return all;
    for (int rank = 1; rank < size; ++rank) all[static_cast<std::size_t>(rank)][6] = static_cast<char>('1' + rank);
    return all;
  };
  return options;
}

// Returns what body(fake()) returns in a separate process, or how that process ended.
inline std::string run_in_subprocess(const std::function<std::string(Fake&)>& body) {
  const auto outcomes = run_ranks(1, As::processes, std::chrono::seconds(30), [&](Rank& rank) {
    fake().alone = true;
    rank.report(body(fake()));
  });
  const Outcome& outcome = outcomes.front();
  return outcome.ok() && !outcome.records.empty() ? outcome.records.front() : outcome.describe();
}

// The error of joining in a separate process, after prepare(fake()).
inline std::string error_of_joining(const std::function<void(Fake&)>& prepare, const comm::JoinOptions& options) {
  return run_in_subprocess([&](Fake& state) {
    prepare(state);
    return error_of([&] { comm::join(nccl(), options); });
  });
}

// The calls that were recorded from `first` on, one per line.
inline std::string calls(Fake& state, std::size_t first = 0) {
  const std::lock_guard lock(state.mutex);
  std::string text;
  for (std::size_t i = first; i < state.calls.size(); ++i) text += state.calls[i] + "\n";
  return text;
}
inline std::size_t count_of_calls(Fake& state) {
  const std::lock_guard lock(state.mutex);
  return state.calls.size();
}

// A collective in place over `count` elements that are never read, on the stream `stream`.
inline Collective on_stream(std::size_t count, uintptr_t stream, DType dtype = DType::float32, Op op = Op::sum) {
  static double elements[64];
  return {.send = elements,
          .recv = elements,
          .count = count,
          .dtype = dtype,
          .op = op,
          .memory = Memory::cuda,
          .stream = reinterpret_cast<void*>(stream)};
}

}  // namespace ddprun::testing
