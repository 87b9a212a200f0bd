// collectives-rank<N>.json: the last collectives of a rank, written when a job fails or gets SIGUSR2.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "ddprun/records.hpp"

namespace ddprun::record {

// One call of a collective by one rank. "", -1 and kAbsent: not known, or does not apply.
struct CollectiveCall {
  int64_t number = 0;         // 1 for the first call of the run; the same on all ranks
  std::string op{};           // "allreduce", "broadcast", "allgather", "reduce_scatter", "barrier"
  std::string dtype{};        // "" for a barrier
  int64_t count = -1;         // elements; -1 for a barrier
  std::string reduction{};    // "sum", ... of allreduce and reduce_scatter
  int64_t root = -1;          // of broadcast
  int64_t bucket = -1;        // of gradients
  std::string memory{};       // "host", "cuda"
  int64_t step = -1;          // of the training; 0 before the first
  std::string state{};        // "started", "queued" (on a stream of a GPU), "finished", "failed"
  double start = kAbsent;     // seconds since 1970, by the clock of the host; every call in a file has it
  double end = kAbsent;       // absent while the call runs
  double duration = kAbsent;  // seconds, by a monotonic clock
};

// The file of one rank.
struct RankCollectives {
  int64_t rank = 0, world = 1;
  std::string host{};
  int64_t pid = -1;
  std::string backend{};
  std::string reason{};                 // why it was written: "SIGUSR2", ...
  double written = 0;                   // when: seconds since 1970
  std::vector<CollectiveCall> calls{};  // oldest first
};

// The keys of the file, for writing and reading.
template <class Call, class Field>
requires std::same_as<std::remove_const_t<Call>, CollectiveCall>
void for_each_key(Call& call, Field field) {
  field("number", call.number);
  field("op", call.op);
  field("dtype", call.dtype);
  field("count", call.count);
  field("reduction", call.reduction);
  field("root", call.root);
  field("bucket", call.bucket);
  field("memory", call.memory);
  field("step", call.step);
  field("state", call.state);
  field("start", call.start);
  field("end", call.end);
  field("duration", call.duration);
}

template <class File, class Field>
requires std::same_as<std::remove_const_t<File>, RankCollectives>
void for_each_key(File& file, Field field) {
  field("rank", file.rank);
  field("world", file.world);
  field("host", file.host);
  field("pid", file.pid);
  field("backend", file.backend);
  field("reason", file.reason);
  field("written", file.written);
}

constexpr const char* kCollectivesPrefix = "collectives-rank";  // then the rank and ".json"
std::string collectives_path(const std::string& run_dir, int64_t rank);

// Writes the file, or replaces it. Throws Error(failure).
void write_collectives(const std::string& run_dir, const RankCollectives& collectives);

}  // namespace ddprun::record
