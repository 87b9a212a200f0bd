#include "testing/leftovers.hpp"

#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

namespace ddprun::conformance {
namespace {

namespace fs = std::filesystem;

bool is_mine(const std::string& path) {
  struct stat facts {};
  return lstat(path.c_str(), &facts) == 0 && facts.st_uid == geteuid();
}

std::set<std::string> files_below(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code gone;  // files of others may disappear meanwhile
  for (fs::recursive_directory_iterator at(folder, gone), end; !gone && at != end; at.increment(gone)) {
    if (is_mine(at->path().string())) names.insert(at->path().string());
  }
  return names;
}

// Other programs of this user share /dev/shm; files that such a program has open are not counted.
bool is_held(const std::string& path) {
  std::error_code gone;
  for (const auto& process : fs::directory_iterator("/proc", gone)) {
    for (fs::directory_iterator at(process.path() / "fd", gone), end; !gone && at != end; at.increment(gone)) {
      if (fs::read_symlink(at->path(), gone) == path) return true;
    }
    std::ifstream maps(process.path() / "maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.ends_with(path)) return true;
    }
  }
  return false;
}

// The segments that these processes created: columns shmid and cpid of /proc/sysvipc/shm. The kernel itself removes a
// segment that is marked (SHM_DEST) with its last process, but this may be some time after the process has ended.
std::set<std::string> segments_of(const std::vector<pid_t>& makers) {
  std::set<std::string> names;
  std::ifstream table("/proc/sysvipc/shm");
  std::string line;
  std::getline(table, line);  // the header line
  while (std::getline(table, line)) {
    std::istringstream columns(line);
    std::string key, id, size;
    unsigned mode = 0;
    pid_t maker = 0;
    columns >> key >> id >> std::oct >> mode >> std::dec >> size >> maker;
    if ((mode & SHM_DEST) == 0 && std::find(makers.begin(), makers.end(), maker) != makers.end()) {
      names.insert("System V segment " + id + " of " + size + " bytes");
    }
  }
  return names;
}

}  // namespace

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  std::error_code gone;
  for (fs::directory_iterator at(folder, gone), end; !gone && at != end; at.increment(gone)) {
    names.insert(at->path().string());
  }
  return names;
}

// Some libraries, such as UCX, create a file there, fill it, and remove its name immediately.
bool stays(const std::string& path) {
  constexpr std::chrono::milliseconds kWait{200};
  if (!is_mine(path) || is_held(path)) return false;
  std::this_thread::sleep_for(kWait);
  std::error_code gone;
  return fs::exists(path, gone);
}

Leftovers::Leftovers(std::string shared_memory) : shared_memory_(std::move(shared_memory)) {
  if (const char* old = std::getenv("TMPDIR")) old_folder_ = old;
  setenv("TMPDIR", folder_.path().c_str(), 1);
  known_ = files_below(shared_memory_);
}

Leftovers::~Leftovers() {
  if (old_folder_) {
    setenv("TMPDIR", old_folder_->c_str(), 1);
  } else {
    unsetenv("TMPDIR");
  }
}

std::vector<std::string> Leftovers::found(const std::vector<pid_t>& ranks) {
  std::vector<std::string> left;
  const auto add = [&](const std::set<std::string>& names, const auto& counts) {
    for (const auto& name : names) {
      if (known_.insert(name).second && counts(name)) left.push_back(name);
    }
  };
  add(files_below(shared_memory_), stays);
  const auto always = [](const std::string&) { return true; };
  add(files_below(folder_.path()), always);
  add(segments_of(ranks), always);
  return left;
}

}  // namespace ddprun::conformance
