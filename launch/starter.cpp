#include "launch/starter.hpp"

#include <unistd.h>

#include <fstream>
#include <string>

namespace ddprun::launch {
namespace {

// False for a process of another user, too: it is no part of this job.
bool was_started_with(const std::string& process, const std::string& variable) {
  std::ifstream file(process + "/environ", std::ios::binary);
  for (std::string entry; std::getline(file, entry, '\0');) {
    if (entry.starts_with(variable + "=")) return true;
  }
  return false;
}

pid_t parent_of(const std::string& process) {
  std::ifstream file(process + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("PPid:")) return std::stoi(line.substr(5));
  }
  return 0;
}

}  // namespace

pid_t starter_of_ranks(const char* variable) {
  pid_t pid = getppid();
  while (pid > 0) {
    const std::string process = "/proc/" + std::to_string(pid);
    if (!was_started_with(process, variable)) break;
    pid = parent_of(process);
  }
  return pid;
}

}  // namespace ddprun::launch
