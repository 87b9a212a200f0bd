#include "launch/oom_kills.hpp"

#include <unistd.h>

#include <fstream>
#include <sstream>

namespace ddprun::launch {
namespace {

bool is_readable(const std::string& file) {
  return ::access(file.c_str(), R_OK) == 0;
}

// `names` is a comma-separated list of controllers.
bool lists_memory(const std::string& names) {
  return ("," + names + ",").find(",memory,") != std::string::npos;
}

}  // namespace

std::string oom_file(const std::string& proc_self_cgroup, const std::string& mount) {
  std::istringstream lines(proc_self_cgroup);
  for (std::string line; std::getline(lines, line);) {  // "hierarchy:controllers:/path"; version 2 is "0::/path"
    const std::size_t controllers = line.find(':') + 1;
    const std::size_t path = line.find(':', controllers) + 1;
    if (controllers == 0 || path == 0) continue;
    const std::string names = line.substr(controllers, path - 1 - controllers);
    const std::string group = line.substr(path) == "/" ? "" : line.substr(path);
    std::string file;
    if (names.empty()) file = mount + group + "/memory.events";
    if (lists_memory(names)) file = mount + "/memory" + group + "/memory.oom_control";
    if (!file.empty() && is_readable(file)) return file;
  }
  return "";
}

std::optional<int64_t> oom_kills(const std::string& file) {
  std::ifstream lines(file);
  std::string name;
  int64_t count = 0;
  while (lines >> name >> count) {
    if (name == "oom_kill") return count;
  }
  return std::nullopt;
}

}  // namespace ddprun::launch
