#include "host/liveness.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::host {
namespace {

// The number after a name at the start of a line; nothing without one.
std::optional<uint64_t> number_after(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string found;
    uint64_t number = 0;
    if (fields >> found >> number && found == name) return number;
  }
  return std::nullopt;
}

// The number that is the content of a file; nothing without one, as in "max".
std::optional<uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

// The names that a version of cgroups gives to the same things.
struct Names {
  const char *limit, *in_use, *cache;
};
constexpr Names kVersion1{"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"};
constexpr Names kVersion2{"/memory.max", "/memory.current", "inactive_file"};

// What is left in one cgroup; nothing if it has no limit.
std::optional<uint64_t> left_in(const std::string& folder, const Names& names) {
  const auto limit = number_in(folder + names.limit);
  const auto in_use = number_in(folder + names.in_use);
  if (!limit || !in_use) return std::nullopt;
  const uint64_t cache = number_after(folder + "/memory.stat", names.cache).value_or(0);
  const uint64_t kept = *in_use - std::min(cache, *in_use);
  return *limit - std::min(kept, *limit);
}

// The limit of each parent applies too. In a container the path may be the host's, which is not mounted there: then
// only the top folder can be read.
uint64_t left_in_all(const std::string& mount, std::string group, const Names& names, uint64_t least) {
  while (true) {
    if (group == "/") group.clear();
    least = std::min(least, left_in(mount + group, names).value_or(least));
    if (group.empty()) return least;
    const std::size_t parent = group.rfind('/');
    group.resize(parent == std::string::npos ? 0 : parent);
  }
}

bool has_memory(const std::string& controllers) {
  return ("," + controllers + ",").find(",memory,") != std::string::npos;
}

}  // namespace

uint64_t available_memory(const std::string& root) {
  const auto kibibytes = number_after(root + "/proc/meminfo", "MemAvailable:");
  if (!kibibytes) throw CommError(CommStatus::internal, "/proc/meminfo does not say how much memory there is");
  uint64_t least = *kibibytes << 10;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "hierarchy:controllers:/path"; version 2 is "0::/path"
    const std::size_t first = line.find(':'), second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    const std::string mount = root + "/sys/fs/cgroup";
    if (controllers.empty()) least = left_in_all(mount, group, kVersion2, least);
    if (has_memory(controllers)) least = left_in_all(mount + "/memory", group, kVersion1, least);
  }
  return least;
}

}  // namespace ddprun::host
