#include <algorithm>
#include <sstream>

#include "tools/doctor/collect.hpp"
#include "tools/doctor/files.hpp"

namespace ddprun::doctor {
namespace {

// A limit from here on is no limit: version 1 has no word for it, but a number near the largest one.
constexpr int64_t kUnlimited = int64_t{1} << 60;

void lower(std::optional<double>& least, double value) {
  if (value > 0 && (!least || value < *least)) least = value;
}

// Nothing for "max".
std::optional<int64_t> limit_in(const std::string& path) {
  const auto number = number_of(path);
  return number && *number >= 0 && *number < kUnlimited ? number : std::nullopt;
}

void lower_processes(GroupLimits& limits, const std::string& folder) {
  if (const auto most = limit_in(folder + "/pids.max")) {
    limits.processes = std::min(limits.processes.value_or(*most), *most);
  }
}

void lower_memory(GroupLimits& limits, const std::string& limit, const std::string& in_use) {
  const auto most = limit_in(limit);
  if (!most || (limits.memory && *limits.memory <= *most)) return;
  limits.memory = most;
  limits.memory_in_use = number_of(in_use);
}

void lower_cpus(GroupLimits& limits, std::optional<int64_t> quota, std::optional<int64_t> period) {
  if (quota && period && *period > 0) lower(limits.cpus, static_cast<double>(*quota) / static_cast<double>(*period));
}

// "200000 100000": quota and period, in microseconds; or "max 100000".
void read_version_2(GroupLimits& limits, const std::string& folder) {
  const std::string cpu = first_line(folder + "/cpu.max");
  if (const auto space = cpu.find(' '); space != std::string::npos) {
    lower_cpus(limits, number_in(cpu), number_in(cpu.substr(space)));
  }
  lower_memory(limits, folder + "/memory.max", folder + "/memory.current");
  lower_processes(limits, folder);
}

void read_version_1(GroupLimits& limits, const std::string& controllers, const std::string& folder) {
  const auto has = [&](const std::string& name) {
    return ("," + controllers + ",").find("," + name + ",") != std::string::npos;
  };
  if (has("cpu")) {
    lower_cpus(limits, number_of(folder + "/cpu.cfs_quota_us"), number_of(folder + "/cpu.cfs_period_us"));
  }
  if (has("memory")) lower_memory(limits, folder + "/memory.limit_in_bytes", folder + "/memory.usage_in_bytes");
  if (has("pids")) lower_processes(limits, folder);
}

}  // namespace

GroupLimits group_limits(const std::string& root) {
  GroupLimits limits;
  std::istringstream lines(text_of(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {  // "hierarchy:controllers:/path"; version 2 is "0::/path"
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    // In a container the path may be the host's, which is not mounted here: then only the top folder can be read.
    for (std::string group = line.substr(second + 1);; group.resize(std::min(group.rfind('/'), group.size()))) {
      if (group == "/") group.clear();
      const std::string mount = root + "/sys/fs/cgroup";
      if (controllers.empty()) {
        read_version_2(limits, mount + group);
      } else {
        read_version_1(limits, controllers, mount + "/" + controllers + group);
      }
      if (group.find('/') == std::string::npos) break;
    }
  }
  return limits;
}

}  // namespace ddprun::doctor
