// Cores, memory, NUMA nodes, limits.
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "tools/doctor/collect.hpp"
#include "tools/doctor/files.hpp"

namespace ddprun::doctor {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

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
  std::error_code error;
  const fs::path folder = root + "/sys/devices/system/node";
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    const auto number = name.starts_with("node") ? number_in(name.substr(4)) : std::nullopt;
    if (!number || *number < 0 || *number > kMostCpus) continue;
    NumaNode node;
    node.number = static_cast<int>(*number);
    node.cpus = first_line(entry->path() / "cpulist");
    const std::string key = "Node " + name.substr(4) + " MemTotal:";
    node.memory = kibibytes_after(text_of(entry->path() / "meminfo"), key);
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
  limits.group_processes = group_limits(root).processes;
  limits.shm = space_of(root + "/dev/shm");
  limits.job_folder = space_of(job_folder);
  return limits;
}

}  // namespace ddprun::doctor
