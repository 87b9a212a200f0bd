// The state shared by gpu*.cpp: one per process, under one lock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "gpu.hpp"

namespace ddprun::fake_gpu {

using Lock = std::unique_lock<std::mutex>;
using Time = std::chrono::steady_clock::time_point;
// The known progress of each stream, in pieces of work.
using Clock = std::map<Stream, std::uint64_t>;
using Works = std::vector<std::shared_ptr<Work>>;

class Work {
 public:
  bool is_done = false;
  Time end;
  Works after;
  std::vector<std::shared_ptr<void>> memory;  // freed while this may still use it
};

class Event {
 public:
  Clock clock;
  Works after;
  Time time;  // when it was recorded
  bool is_recorded = false;

  Time end() const;
};

struct StreamState {
  Clock clock;
  Works pending;
  struct Unknown {
    std::uint64_t piece;
    std::function<void()> action;
  };
  std::vector<Unknown> unknown;  // ends of pieces that the host has not waited for
};

struct Access {
  std::uintptr_t begin;
  std::uintptr_t end;
  Stream stream;
  std::uint64_t piece;
  bool writes;
  std::string what;
};

struct Block {
  std::uintptr_t end;
  Stream stream;           // of its allocation
  std::set<Stream> users;  // added by used_on
  std::vector<Access> accesses;
};

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<Stream, StreamState> streams;
  Clock host;
  std::map<std::uintptr_t, Block> blocks;  // by their first byte
  std::string fault;                       // found where nothing can be thrown
  std::string record;

  // The stream learns what the host knows: the host queues its next piece.
  StreamState& stream(Stream stream);
  // Waits until all are done, and empties the list.
  void wait(Lock& lock, Works& works);
  void wait(Lock& lock, const Works& works);
  // The actions to run, outside the lock, now that the host has waited so far.
  std::vector<std::function<void()>> host_knows(const Clock& clock);
  void note(const std::string& line);
  void fail(const std::string& race);

  // The one that has the address, or null.
  Block* block_at(std::uintptr_t address);
  Block& add_block(std::uintptr_t begin, std::uintptr_t end, Stream stream);
};

State& state();
void merge(Clock& into, const Clock& other);
bool all_done(const Works& works);
// Adds an access to memory by a stream that knows `clock`. Throws Race.
void order(std::vector<Access>& accesses, Access now, const Clock& clock);

}  // namespace ddprun::fake_gpu
