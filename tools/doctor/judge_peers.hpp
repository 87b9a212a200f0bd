// Judges what the test between hosts has measured, and prints it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/doctor/finding.hpp"
#include "tools/doctor/peers.hpp"

namespace ddprun::doctor {

// Pure. One finding for each host, and one for each problem.
std::vector<Finding> judge_peers(const PeersReport& report);

// A row per ordered pair of hosts; "" without pairs.
std::string peers_text(const PeersReport& report);
// {"hosts": [...], "pairs": [...], "findings": [...]}; pairs count hosts from 0.
nlohmann::ordered_json peers_json(const PeersReport& report, const std::vector<Finding>& findings);

}  // namespace ddprun::doctor
