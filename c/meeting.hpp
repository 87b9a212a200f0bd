// What the ranks of a group say to each other before they have a backend: whether they fit together, and where they
// compare their calls.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/fingerprint.hpp"
#include "comm/plugin_backend.hpp"
#include "ddprun/ddprun.h"

namespace ddprun::c {

// One text of each rank, in rank order, of any length. All ranks call it.
using Gather = std::function<std::vector<std::string>(std::string_view)>;

// Over the allgather of the options, which moves as many bytes of each rank. Throws CommError(peer_lost) if it fails.
Gather gather_over(const ddprun_group_options& options);

// Throws CommError(mismatch), the same on all ranks, if the ranks differ in what `mine` says: one "name = value" per
// line, the same names on all ranks. `who` begins the message.
void require_equal(const Gather& gather, const std::string& mine, const std::string& who);

// Where the ranks of `backend` compare their calls: in shared memory if all are on one host, else over the backend.
// All ranks call it. Throws CommError, the same on all ranks, if the memory cannot be made.
std::unique_ptr<comm::FingerprintExchange> make_exchange(const Gather& gather, comm::PluginBackend& backend);

}  // namespace ddprun::c
