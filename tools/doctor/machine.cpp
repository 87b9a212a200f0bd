// Cores, memory, NUMA nodes, limits, network links.
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>

#include "ddprun/error.hpp"
#include "launch/net/address.hpp"
#include "tools/doctor/facts.hpp"
#include "tools/doctor/files.hpp"

namespace ddprun::doctor {
namespace {

constexpr int kMostCpus = 1 << 16;

// "Max open files   1024   4096   files": the first value is the limit in force.
std::optional<Limit> limit_after(const std::string& text, const std::string& name) {
  const std::string rest = line_after(text, name);
  const std::size_t begin = rest.find_first_not_of(' ');
  if (begin == std::string::npos) return std::nullopt;
  if (rest.compare(begin, 9, "unlimited") == 0) return Limit();
  const auto number = number_in(rest);
  if (!number || *number < 0) return std::nullopt;
  return Limit(static_cast<uint64_t>(*number));
}

// Tries to write, because permission bits do not show a read-only mount or a full disk.
Space space_of(const std::string& path) {
  Space space;
  space.path = path;
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) == 0) {
    space.size = static_cast<int64_t>(status.f_blocks * status.f_frsize);
    space.free = static_cast<int64_t>(status.f_bavail * status.f_frsize);
  }
  std::string file = path + "/ddprun-doctor-XXXXXX";
  const int fd = ::mkstemp(file.data());
  if (fd < 0) {
    space.error = std::strerror(errno);
    return space;
  }
  if (::write(fd, "ddprun", 6) != 6) space.error = std::strerror(errno);
  ::close(fd);
  ::unlink(file.c_str());
  return space;
}

// A limit from here on is no limit: version 1 has no word for it, but a number near the largest one.
constexpr int64_t kUnlimited = int64_t{1} << 60;

// Nothing for "max".
std::optional<int64_t> limit_in(const std::string& path) {
  const auto number = number_of(path);
  return number && *number >= 0 && *number < kUnlimited ? number : std::nullopt;
}

void lower_memory(GroupLimits& limits, const std::string& limit, const std::string& in_use) {
  const auto most = limit_in(limit);
  if (!most || (limits.memory && *limits.memory <= *most)) return;
  limits.memory = most;
  limits.memory_in_use = number_of(in_use);
}

void lower_cpus(GroupLimits& limits, std::optional<int64_t> quota, std::optional<int64_t> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return;
  const double cpus = static_cast<double>(*quota) / static_cast<double>(*period);
  limits.cpus = std::min(limits.cpus.value_or(cpus), cpus);
}

// The files of both versions: a folder has those of one, or of some of its controllers.
void read_group(GroupLimits& limits, const std::string& folder) {
  const std::string cpu = first_line(folder + "/cpu.max");  // "200000 100000", in microseconds, or "max 100000"
  lower_cpus(limits, number_in(cpu), number_in(cpu.substr(std::min(cpu.find(' '), cpu.size()))));
  lower_cpus(limits, number_of(folder + "/cpu.cfs_quota_us"), number_of(folder + "/cpu.cfs_period_us"));
  lower_memory(limits, folder + "/memory.max", folder + "/memory.current");
  lower_memory(limits, folder + "/memory.limit_in_bytes", folder + "/memory.usage_in_bytes");
  const auto most = limit_in(folder + "/pids.max");
  if (most) limits.processes = std::min(limits.processes.value_or(*most), *most);
}

// The interface of the default route: the one that the kernel chooses for an address that nobody has (RFC 5737, 3849).
// No packet is sent. Of IPv4, or else of IPv6.
std::string default_route() {
  for (const char* const outside : {"192.0.2.1", "2001:db8::1"}) {
    try {
      const auto interfaces = network_interfaces();
      const auto* const found = interface_with(interfaces, launch::route_to(outside).from);
      if (found != nullptr && !found->is_loopback) return found->name;
    } catch (const Error&) {
      continue;  // no route
    }
  }
  return "";
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
      read_group(limits, root + "/sys/fs/cgroup" + (controllers.empty() ? "" : "/" + controllers) + group);
      if (group.find('/') == std::string::npos) break;
    }
  }
  return limits;
}

std::vector<int> cpu_list(const std::string& text) {
  std::vector<int> cpus;
  std::istringstream ranges(text.substr(0, text.find('\n')));
  for (std::string range; std::getline(ranges, range, ',');) {
    const auto first = number_in(range.substr(0, range.find('-')));
    const auto last = range.find('-') == std::string::npos ? first : number_in(range.substr(range.find('-') + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= kMostCpus) return {};
    for (int64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

Cores cores(const std::string& root) {
  Cores cores;
  const std::string cpu = root + "/sys/devices/system/cpu/";
  const auto online = cpu_list(first_line(cpu + "online"));
  cores.online = static_cast<int64_t>(online.size());
  cores.usable_list = line_after(text_of(root + "/proc/self/status"), "Cpus_allowed_list:");
  cores.usable_list.erase(0, cores.usable_list.find_first_not_of(" \t"));
  cores.usable = static_cast<int64_t>(cpu_list(cores.usable_list).size());
  for (const int one : online) {
    const auto together = cpu_list(first_line(cpu + "cpu" + std::to_string(one) + "/topology/thread_siblings_list"));
    cores.threads_per_core = std::max(cores.threads_per_core, static_cast<int64_t>(together.size()));
  }
  cores.cpu_time = group_limits(root).cpus;
  return cores;
}

Memory memory(const std::string& root) {
  const std::string text = text_of(root + "/proc/meminfo");
  const GroupLimits group = group_limits(root);
  return {kibibytes_after(text, "MemTotal:"), kibibytes_after(text, "MemAvailable:"), group.memory,
          group.memory_in_use};
}

std::vector<NumaNode> numa(const std::string& root, const Cores& cores) {
  const auto mask = cpu_list(cores.usable_list);
  const std::set<int> usable(mask.begin(), mask.end());
  std::vector<NumaNode> nodes;
  const std::string folder = root + "/sys/devices/system/node/";
  for (const std::string& name : names_in(folder)) {
    const auto number = name.starts_with("node") ? number_in(name.substr(4)) : std::nullopt;
    if (!number || *number < 0 || *number > kMostCpus) continue;
    NumaNode node;
    node.number = static_cast<int>(*number);
    node.cpus = first_line(folder + name + "/cpulist");
    const std::string key = "Node " + name.substr(4) + " MemTotal:";
    node.memory = kibibytes_after(text_of(folder + name + "/meminfo"), key);
    const auto cpus = cpu_list(node.cpus);
    node.usable = std::any_of(cpus.begin(), cpus.end(), [&](int one) { return usable.count(one) > 0; });
    nodes.push_back(std::move(node));
  }
  std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  return nodes;
}

Limits limits(const std::string& root, const std::string& job_folder) {
  const std::string text = text_of(root + "/proc/self/limits");
  Limits limits;
  limits.memlock = limit_after(text, "Max locked memory");
  limits.files = limit_after(text, "Max open files");
  limits.processes = limit_after(text, "Max processes");
  if (const auto most = group_limits(root).processes) limits.group_processes = Limit(*most);
  limits.shm = space_of(root + "/dev/shm");
  limits.job_folder = space_of(job_folder);
  return limits;
}

std::vector<Interface> interfaces(const std::string& root) {
  std::vector<Interface> list;
  for (NetworkInterface& one : network_interfaces()) {
    std::erase_if(one.addresses, [](const std::string& address) { return address.find('%') != std::string::npos; });
    list.emplace_back();
    static_cast<NetworkInterface&>(list.back()) = std::move(one);
  }
  read_links(root, list);
  const std::string route = default_route();
  for (Interface& one : list) one.default_route = one.name == route;
  return list;
}

void read_links(const std::string& root, std::vector<Interface>& interfaces) {
  for (Interface& interface : interfaces) {
    const std::string folder = root + "/sys/class/net/" + interface.name;
    interface.mtu = number_of(folder + "/mtu").value_or(0);
    // Reading it fails for interfaces without a link; virtual ones report -1 or 4294967295.
    const auto speed = number_of(folder + "/speed");
    if (speed && *speed > 0 && *speed < UINT32_MAX) interface.speed = speed;
  }
}

}  // namespace ddprun::doctor
