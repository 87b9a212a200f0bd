// Where the ranks are, and NCCL's unique id: what they tell one another before they join.
#pragma once

#include <nccl.h>

#include <string>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "device.hpp"
#include "settings.hpp"

namespace ddprun::nccl_backend {

// Collective, before anything of NCCL runs: compares where the ranks are and what they ask of NCCL. Returns whether all
// are on one host. Throws CommError: CommStatus::invalid where two share a GPU, CommStatus::mismatch where their NCCL
// or their way to force an algorithm differs.
bool meet(const Host& host, const Device& device, const Settings& settings, const std::string& forced);

// Collective: the id that rank 0 makes. Every rank throws where that fails.
ncclUniqueId exchange_id(const Host& host);

}  // namespace ddprun::nccl_backend
