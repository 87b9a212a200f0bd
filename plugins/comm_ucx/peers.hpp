// The connections: one endpoint per peer.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <string>
#include <vector>

#include "context.hpp"

namespace ddprun::ucx_backend {

// One thread, the worker's. The worker outlives it.
class Peers {
 public:
  // addresses: of all ranks' workers. by_memory[rank]: that rank is reached through shared memory, where UCX does not
  // handle errors; for the others UCX reports when a connection ends. Throws CommError.
  Peers(const Worker& worker, const std::vector<std::string>& addresses, const std::vector<bool>& by_memory, int self);
  // Closes without waiting for the peers.
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // Null for this rank.
  ucp_ep_h endpoint(int rank) const noexcept { return endpoints_[static_cast<std::size_t>(rank)]; }
  bool is_by_memory(int rank) const noexcept { return by_memory_[static_cast<std::size_t>(rank)]; }
  // True once UCX has seen that connection end.
  bool is_lost(int rank) const noexcept { return lost_[static_cast<std::size_t>(rank)] != 0; }
  // Whether one connection of TCP leads to that rank, and nothing else.
  bool is_by_tcp(int rank) const;
  // The transports in use, "sysv,cma" or "tcp", except for those that lead only to ranks in `without`.
  std::string transports(const std::vector<bool>& without) const;
  // The same with devices: "sysv/memory,cma/memory", "tcp/eth0".
  std::string lanes(const std::vector<bool>& without) const;

 private:
  explicit Peers(const std::vector<bool>& by_memory)
      : by_memory_(by_memory), endpoints_(by_memory.size(), nullptr), lost_(by_memory.size(), 0) {}

  std::vector<bool> by_memory_;
  std::vector<ucp_ep_h> endpoints_;
  std::vector<char> lost_;  // UCX has the addresses of its elements
};

}  // namespace ddprun::ucx_backend
