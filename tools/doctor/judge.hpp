// Judges the facts of a host. Pure functions: the same facts give the same findings.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/doctor/facts.hpp"
#include "tools/doctor/finding.hpp"

namespace ddprun::doctor {

// All findings, group after group.
std::vector<Finding> judge(const Facts& facts);

std::vector<Finding> judge_plugins(const std::vector<Plugin>& plugins, const std::vector<std::string>& folders);
std::vector<Finding> judge_cores(const Cores& cores);
std::vector<Finding> judge_memory(const Memory& memory);
std::vector<Finding> judge_numa(const std::vector<NumaNode>& nodes);
std::vector<Finding> judge_gpus(const Gpus& gpus);
std::vector<Finding> judge_network(const Network& network);
// `rdma`: the host has an RDMA device.
std::vector<Finding> judge_limits(const Limits& limits, bool rdma);
std::vector<Finding> judge_variables(const std::vector<std::pair<std::string, std::string>>& variables,
                                     const Network& network, const Cores& cores);
std::vector<Finding> judge_launcher(const Launcher& launcher);

// The interface whose address other hosts should use: that of the default route, else the first one that is up. Null
// if there is none but loopback.
const Interface* main_interface(const std::vector<Interface>& interfaces);
bool is_loopback_address(const std::string& address);

// "a, b" of a list.
std::string joined(const std::vector<std::string>& words);

}  // namespace ddprun::doctor
