// The store under launchers other than ddprun: c10d's TCPStore as a Store. In a target of its own, ddprun_launch_c10d,
// because it links torch.
#pragma once

#include <chrono>
#include <memory>

#include "launch/store.hpp"
#include "launch/world.hpp"

namespace ddprun::launch {

// Joins the store at world.master_addr:master_port, for a world that is not own. torchrun's agent hosts it if
// TORCHELASTIC_USE_AGENT_STORE is True, and every rank is a client. Otherwise, rank 0 hosts it as long as its Store
// lives. Keys contain the job's id, so that a restarted group does not read old keys. Waits at most `timeout` for the
// host; throws Error(rendezvous).
std::unique_ptr<Store> tcp_store(const World& world, std::chrono::milliseconds timeout);

}  // namespace ddprun::launch
