// Reads the facts of a host. `root` is put before every path in /proc, /sys, /dev and /etc, so that a test can use a
// folder of its files; "" is the real system. What cannot be read is absent. Only collect() throws.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plugin/registry.hpp"
#include "tools/doctor/facts.hpp"

namespace ddprun::doctor {

// Everything. Loads plugins and CUDA in child processes, so call it while there is only one thread. May wait half a
// minute for a plugin, a GPU driver or a name server that does not answer.
Facts collect(const std::string& root, const plugin::Registry& registry);

std::vector<std::pair<std::string, std::string>> versions(const std::string& root);
Cores cores(const std::string& root);
Memory memory(const std::string& root);
std::vector<NumaNode> numa(const std::string& root, const Cores& cores);
Limits limits(const std::string& root, const std::string& job_folder);
Gpus gpus(const std::string& root);
std::vector<Plugin> plugins(const plugin::Registry& registry);
// The variables in `environment` (as environ) that change communication, sorted by name.
std::vector<std::pair<std::string, std::string>> variables(const char* const* environment);
Launcher launcher();

// The links and addresses of this network namespace. Speed and routes come from files below `root`.
std::vector<Interface> interfaces(const std::string& root);
// Adds to the interfaces what the files below `root` report: speed and default route.
void read_links(const std::string& root, std::vector<Interface>& interfaces);
std::vector<std::string> rdma_devices(const std::string& root);
// The addresses of a name. Waits at most 10 s.
Resolved resolve(const std::string& name);
std::string hostname();

// The limit of the cgroups that hold this process, version 1 or 2: the smallest of the group and those above it.
struct GroupLimits {
  std::optional<double> cpus;
  std::optional<int64_t> memory, memory_in_use;  // in_use: of the group with the limit
  std::optional<int64_t> processes;
};
GroupLimits group_limits(const std::string& root);

// The CPUs of a list such as "0-3,8"; empty if it cannot be read.
std::vector<int> cpu_list(const std::string& text);

}  // namespace ddprun::doctor
