// How ranks meet under torchrun, whose agent hosts a store (c10d's TCPStore). It is in a separate target,
// ddprun_launch_c10d, because it links LibTorch.
#pragma once

#include <chrono>
#include <memory>

#include "base/store.hpp"
#include "launch/world.hpp"

namespace ddprun::launch {

// As open_store(), for any launcher. Where world.agent_store is true, rank 0 hosts ddprun's store on a free port, with
// a new secret, and passes both to the other ranks through the agent's store. Restarted ranks do not join the store of
// an earlier attempt. Throws Error(rendezvous).
std::unique_ptr<Store> open_any_store(World& world, std::chrono::milliseconds timeout);

}  // namespace ddprun::launch
