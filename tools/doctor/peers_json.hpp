// The results of the test between hosts as JSON: between ranks, and for --json. Values that were not measured are null.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tools/doctor/peers.hpp"

namespace ddprun::doctor {

nlohmann::ordered_json to_json(const PeerHost& host);
nlohmann::ordered_json to_json(const PeerPair& pair);
// Throw nlohmann::json::exception for other content.
PeerHost host_from(const nlohmann::json& value);
PeerPair pair_from(const nlohmann::json& value);

}  // namespace ddprun::doctor
