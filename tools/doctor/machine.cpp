// What files of the system report: cores, memory, NUMA nodes, limits, links.
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/text.hpp"
#include "ddprun/error.hpp"
#include "launch/net/address.hpp"
#include "tools/doctor/facts.hpp"

namespace ddprun::doctor {
namespace {

constexpr int kMostCpus = 1 << 16;
constexpr std::size_t kMostBytes = 1 << 20;  // of a file

// The file's text; "" if it cannot be read.
std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

// What follows `key` on the line that starts with it; "" if no line does.
std::string line_after(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key)) return line.substr(key.size());
  }
  return "";
}

// The first word of that.
std::string word_after(const std::string& text, const std::string& key) {
  std::string word;
  std::istringstream(line_after(text, key)) >> word;
  return word;
}

std::string word_of(const std::string& path) {
  return word_after(text_of(path), "");
}

std::optional<int64_t> number_of(const std::string& path) {
  return parse_number<int64_t>(word_of(path));
}

// "MemTotal:  1024 kB" as bytes.
std::optional<int64_t> kibibytes_after(const std::string& text, const std::string& key) {
  const auto number = parse_number<int64_t>(word_after(text, key));
  if (!number || *number < 0 || *number > INT64_MAX / 1024) return std::nullopt;
  return *number * 1024;
}

// "Max open files   1024   4096   files": the first value is the limit in force.
std::optional<Limit> limit_after(const std::string& text, const std::string& key) {
  const std::string word = word_after(text, key);
  if (word == "unlimited") return Limit();
  const auto number = parse_number<uint64_t>(word);
  if (!number) return std::nullopt;
  return Limit(number);
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
  if (fd < 0 || ::write(fd, "ddprun", 6) != 6) space.error = std::strerror(errno);
  if (fd < 0) return space;
  ::close(fd);
  ::unlink(file.c_str());
  return space;
}

// Nothing for "max". A limit from here on is no limit: version 1 has no word for it, but a number near the largest one.
constexpr int64_t kUnlimited = int64_t{1} << 60;

std::optional<int64_t> limit_in(const std::string& path) {
  const auto number = number_of(path);
  return number && *number >= 0 && *number < kUnlimited ? number : std::nullopt;
}

std::optional<double> cpus_of(const std::string& quota, const std::string& period) {
  const auto part = parse_number<int64_t>(quota), whole = parse_number<int64_t>(period);
  if (!part || !whole || *part <= 0 || *whole <= 0) return std::nullopt;
  return static_cast<double>(*part) / static_cast<double>(*whole);
}

// Whether `value` is a smaller limit; then it is the limit.
template <class Number>
bool lower(std::optional<Number>& limit, const std::optional<Number>& value) {
  if (!value || (limit && *limit <= *value)) return false;
  limit = value;
  return true;
}

// The files of both versions: a folder has those of one, or of some of its controllers.
void read_group(GroupLimits& limits, const std::string& folder) {
  const std::string cpu = text_of(folder + "/cpu.max");  // "200000 100000", in microseconds, or "max 100000"
  lower(limits.cpus, cpus_of(word_after(cpu, ""), word_after(cpu, word_after(cpu, ""))));
  lower(limits.cpus, cpus_of(word_of(folder + "/cpu.cfs_quota_us"), word_of(folder + "/cpu.cfs_period_us")));
  for (const auto& [limit, in_use] :
       {std::pair("/memory.max", "/memory.current"), {"/memory.limit_in_bytes", "/memory.usage_in_bytes"}}) {
    if (lower(limits.memory, limit_in(folder + limit))) limits.memory_in_use = number_of(folder + in_use);
  }
  lower(limits.processes, limit_in(folder + "/pids.max"));
}

// This host's address in the default route: the source of packets to an address that nobody has (RFC 5737, 3849). No
// packet is sent. Of IPv4, or else of IPv6.
std::string outgoing_address() {
  for (const char* const outside : {"192.0.2.1", "2001:db8::1"}) {
    try {
      if (const std::string from = launch::route_to(outside).from; !launch::is_loopback(from)) return from;
    } catch (const Error&) {
      continue;  // no route
    }
  }
  return "";
}

}  // namespace

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 ...": the first word that is a version.
std::string gpu_driver(const std::string& root) {
  std::istringstream words(line_after(text_of(root + "/proc/driver/nvidia/version"), "NVRM version:"));
  for (std::string word; words >> word;) {
    const bool digits = word.find_first_not_of("0123456789.") == std::string::npos;
    if (digits && word.find('.') != std::string::npos) return word;
  }
  return "";
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  std::ranges::sort(names);
  return names;
}

GroupLimits group_limits(const std::string& root) {
  GroupLimits limits;
  std::istringstream lines(text_of(root + "/proc/self/cgroup"));
  // "hierarchy:controllers:/path"; version 2 is "0::/path".
  for (std::string hierarchy, controllers, group; std::getline(lines, hierarchy, ':');) {
    if (!std::getline(lines, controllers, ':') || !std::getline(lines, group)) break;
    // In a container the path may be the host's, which is not mounted here: then only the top folder can be read.
    for (;; group.resize(std::min(group.rfind('/'), group.size()))) {
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
    const auto first = parse_number<int>(range.substr(0, range.find('-')));
    const auto last = parse_number<int>(range.substr(range.find('-') + 1));  // the whole text if there is no '-'
    if (!first || !last || *first < 0 || *last < *first || *last >= kMostCpus) return {};
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

Cores cores(const std::string& root) {
  Cores cores;
  const std::string cpu = root + "/sys/devices/system/cpu/";
  const auto online = cpu_list(word_of(cpu + "online"));
  cores.online = static_cast<int64_t>(online.size());
  cores.usable_list = word_after(text_of(root + "/proc/self/status"), "Cpus_allowed_list:");
  cores.usable = static_cast<int64_t>(cpu_list(cores.usable_list).size());
  for (const int one : online) {
    const auto together = cpu_list(word_of(cpu + "cpu" + std::to_string(one) + "/topology/thread_siblings_list"));
    cores.threads_per_core = std::max(cores.threads_per_core, static_cast<int64_t>(together.size()));
  }
  return cores;
}

Memory memory(const std::string& root) {
  const std::string text = text_of(root + "/proc/meminfo");
  return {kibibytes_after(text, "MemTotal:"), kibibytes_after(text, "MemAvailable:")};
}

std::vector<NumaNode> numa(const std::string& root, const Cores& cores) {
  const auto mask = cpu_list(cores.usable_list);
  std::vector<NumaNode> nodes;
  for (const std::string& name : names_in(root + "/sys/devices/system/node")) {
    const auto number = name.starts_with("node") ? parse_number<int>(name.substr(4)) : std::nullopt;
    if (!number || *number < 0) continue;
    const std::string folder = root + "/sys/devices/system/node/" + name;
    NumaNode node{.number = *number, .cpus = word_of(folder + "/cpulist"), .memory = {}};
    node.memory = kibibytes_after(text_of(folder + "/meminfo"), "Node " + name.substr(4) + " MemTotal:");
    const auto cpus = cpu_list(node.cpus);
    node.usable = std::ranges::find_first_of(cpus, mask) != cpus.end();
    nodes.push_back(std::move(node));
  }
  std::ranges::sort(nodes, {}, &NumaNode::number);
  return nodes;
}

Limits limits(const std::string& root, const std::string& job_folder) {
  const std::string text = text_of(root + "/proc/self/limits");
  return {.memlock = limit_after(text, "Max locked memory"),
          .files = limit_after(text, "Max open files"),
          .processes = limit_after(text, "Max processes"),
          .shm = space_of(root + "/dev/shm"),
          .job_folder = space_of(job_folder)};
}

std::vector<Interface> interfaces(const std::string& root) {
  std::vector<Interface> list;
  const std::string outgoing = outgoing_address();
  for (NetworkInterface& one : network_interfaces()) {
    std::erase_if(one.addresses, [](const std::string& address) { return address.find('%') != std::string::npos; });
    const bool leads_out = !one.is_loopback && std::ranges::count(one.addresses, outgoing) > 0;
    list.push_back({std::move(one), 0, {}, leads_out});
  }
  read_links(root, list);
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
