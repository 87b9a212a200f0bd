// Sees the processes of this host's ranks end. Libraries whose ranks talk through memory do not say so: UCX over shared
// memory, NCCL over NVLink.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "ddprun/plugin/process_watch.hpp"

namespace ddprun::host {

// Where a rank runs.
struct Place {
  std::string host;  // identity(); "" is a host of its own
  int64_t pid = 0;
  uint64_t started = 0;  // of the process, in clock ticks since boot: tells it from a later one of the same number
};

Place place_of_this_process();
// Collective: of all ranks, by their numbers.
std::vector<Place> places_of(const Host& host);
bool share_host(const Place& a, const Place& b);
// The first rank of each host, ascending.
std::vector<int> leaders_of(const std::vector<Place>& places);

// One thread.
class Liveness {
 public:
  // Watches the ranks that share a host with rank `self`; they may have ended already. Throws CommError.
  Liveness(const std::vector<Place>& places, int self);

  // True once that rank's process has ended. Never of ranks that are not watched, or are threads of this process.
  bool has_ended(int rank) const noexcept;
  // The first of which that is true, or -1.
  int first_ended() const noexcept;

 private:
  std::vector<ProcessWatch> processes_;  // by rank
};

}  // namespace ddprun::host
