// collectives-rank<N>.json: the last collectives of a rank, written when a job fails or gets SIGUSR2.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/flight_recorder.hpp"

namespace ddprun::comm {

// The file of one rank. "" and -1: not known.
struct RankCollectives {
  int64_t rank = 0, world = 1;
  std::string host{};
  int64_t pid = -1;
  std::string backend{};
  std::string reason{};               // why it was written: "SIGUSR2", ...
  double written = 0;                 // when: seconds since 1970
  std::vector<RecordedCall> calls{};  // oldest first
};

constexpr const char* kCollectivesPrefix = "collectives-rank";  // then the rank and ".json"
std::string collectives_path(const std::string& run_dir, int64_t rank);

// Writes the file, or replaces it. Throws Error(failure).
void write_collectives(const std::string& run_dir, const RankCollectives& collectives);

}  // namespace ddprun::comm
