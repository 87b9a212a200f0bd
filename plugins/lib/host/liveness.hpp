// This host: which ranks share it, how much memory it still has, and when the processes of its ranks end. Libraries
// that communicate through memory do not report that end: UCX over shared memory, NCCL over NVLink.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "ddprun/plugin/host.hpp"

namespace ddprun::host {

// The process of a rank, and where it runs.
struct Process {
  std::string host;  // host_identity(); "": no other rank is on this host
  int64_t pid = 0;
  uint64_t started = 0;  // of the process, in clock ticks since boot: a later process with the same pid differs
  std::string network;   // network_identity(); "": no other rank is in this network namespace
};

Process this_process();
// Those of all ranks, by rank. Collective, with the host's allgather; throws as that does.
std::vector<Process> processes_of(const Host& host);
bool share_host(const Process& a, const Process& b);
bool share_network(const Process& a, const Process& b);  // they reach each other at 127.0.0.1
// The first rank of each host, ascending.
std::vector<int> leaders_of(const std::vector<Process>& processes);

// The least of what the system can give and what the memory cgroups of this process leave (version 1 or 2), in bytes.
// Page cache that the kernel can drop counts as free. `root`: the folder that has proc/ and sys/. Throws CommError if
// /proc/meminfo cannot be read.
uint64_t available_memory(const std::string& root = "");

// One thread.
class Liveness {
 public:
  // Watches the ranks that share a host with rank `self`; they may have ended already. Throws CommError.
  Liveness(const std::vector<Process>& processes, int self);

  // False if no other rank shares the host.
  bool watches_any() const noexcept;
  // True once that rank's process has ended. False for ranks that are not watched or are threads of this process.
  bool has_ended(int rank) const noexcept;
  // The first rank that has ended, or -1.
  int first_ended() const noexcept;

 private:
  std::vector<ProcessWatch> watches_;  // by rank
};

}  // namespace ddprun::host
