#include "launch/copies.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "ddprun/error.hpp"

namespace ddprun::launch {
namespace {

namespace fs = std::filesystem;

constexpr double kAtOnce = 2;  // seconds

struct Birth {
  pid_t parent = 0;
  uint64_t ticks = 0;  // since boot
};

// Fields 4 and 22 of /proc/PID/stat; the name in parentheses may hold anything.
std::optional<Birth> birth_of(const fs::path& process) {
  std::ifstream file(process / "stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(std::min(text.rfind(')'), text.size() - 1) + 1));
  std::string skipped;
  Birth birth;
  fields >> skipped >> birth.parent;
  for (int field = 5; field < 22; ++field) fields >> skipped;
  fields >> birth.ticks;
  return fields ? std::optional(birth) : std::nullopt;
}

std::string text_in(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

bool same_user(const fs::path& process) {
  struct stat status {};
  return ::stat(process.c_str(), &status) == 0 && status.st_uid == ::geteuid();
}

}  // namespace

std::vector<pid_t> older_copies(const std::string& proc) {
  const fs::path self = fs::path(proc) / std::to_string(::getpid());
  const auto own = birth_of(self);
  std::vector<pid_t> copies;
  if (!own) return copies;
  const std::string command = text_in(self / "cmdline");
  std::error_code ignored;
  const fs::path folder = fs::read_symlink(self / "cwd", ignored);
  const auto range = static_cast<uint64_t>(kAtOnce * static_cast<double>(::sysconf(_SC_CLK_TCK)));
  for (const auto& entry : fs::directory_iterator(proc, ignored)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos || name == self.filename()) continue;
    const auto birth = birth_of(entry.path());
    if (!birth || birth->parent != own->parent || birth->ticks + range < own->ticks) continue;
    const pid_t pid = std::stoi(name);
    const bool older = birth->ticks < own->ticks || (birth->ticks == own->ticks && pid < ::getpid());
    if (!older || !same_user(entry.path()) || text_in(entry.path() / "cmdline") != command) continue;
    if (fs::read_symlink(entry.path() / "cwd", ignored) == folder) copies.push_back(pid);
  }
  return copies;
}

void refuse_copies() {
  const auto copies = older_copies();
  if (copies.empty()) return;
  throw Error(ExitCode::rendezvous,
              "process " + std::to_string(copies.front()) +
                  " was started with the same command at the same time, as if by a launcher, but neither process has a "
                  "rank: set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT for each, or use srun, mpirun or torchrun; "
                  "with --standalone, each runs by itself");
}

}  // namespace ddprun::launch
