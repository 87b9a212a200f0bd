// The places of the ranks, and NCCL's unique id: the data that ranks exchange before they create a communicator.
#pragma once

#include <nccl.h>

#include <string>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "device.hpp"
#include "settings.hpp"

namespace ddprun::nccl_backend {

// Collective, before the first NCCL call: compares the places and the NCCL settings of all ranks. Returns whether all
// are in one network namespace. Throws CommError: CommStatus::invalid if two ranks share a GPU, CommStatus::mismatch if
// their NCCL versions or their way to force an algorithm differ.
bool meet(const Host& host, const Device& device, const Settings& settings, const std::string& forced);

// Collective: the id that rank 0 creates. Every rank throws if that fails.
ncclUniqueId exchange_id(const Host& host);

}  // namespace ddprun::nccl_backend
