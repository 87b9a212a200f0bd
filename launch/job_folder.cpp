#include "launch/job_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "ddprun/error.hpp"

namespace ddprun::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "ddprun-job-";
constexpr const char* kLock = "/lock";

[[noreturn]] void fail_to_lock(const std::string& path) {
  throw Error(ExitCode::failure, "the job's folder " + path + " cannot be locked: " + std::strerror(errno));
}

bool is_mine(const std::string& folder) {
  struct stat status {};
  return ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid();
}

// The lock file gets its name only after it is locked, so an unlocked "lock" means that its owner is dead.
UniqueFd make_lock(const std::string& folder) {
  const std::string aside = folder + "/lock.aside";
  UniqueFd lock(::open(aside.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) fail_to_lock(folder);
  if (::rename(aside.c_str(), (folder + kLock).c_str()) != 0) fail_to_lock(folder);
  return lock;
}

void remove_folder(const std::string& folder) noexcept {
  std::error_code ignored;  // a later launcher tries again
  fs::remove_all(folder, ignored);
}

void remove_if_stale(const std::string& folder) {
  if (!is_mine(folder)) return;
  // There is no lock yet: its launcher is just creating the folder, or died in these microseconds. Leave it.
  const UniqueFd lock(::open((folder + kLock).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) remove_folder(folder);
}

}  // namespace

std::string job_folder_base() {
  const auto can_write = [](const char* folder) {
    std::error_code ignored;
    return folder != nullptr && *folder == '/' && fs::is_directory(folder, ignored) &&
           ::access(folder, W_OK | X_OK) == 0;
  };
  // After su or sudo the variable still names the other user's folder.
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); can_write(runtime) && is_mine(runtime)) return runtime;
  const char* temporary = std::getenv("TMPDIR");
  return can_write(temporary) ? temporary : "/tmp";
}

JobFolder::JobFolder() : path_(job_folder_base() + "/" + std::string(kPrefix) + "XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) {
    throw Error(ExitCode::failure, "cannot make the job's folder " + path_ + ": " + std::strerror(errno) +
                                       "; set XDG_RUNTIME_DIR to a folder of this user, or TMPDIR to a folder in which "
                                       "this user may write");
  }
  try {
    lock_ = make_lock(path_);
  } catch (...) {
    remove_folder(path_);
    throw;
  }
}

JobFolder::~JobFolder() {
  remove_folder(path_);
}

void remove_stale_job_folders(const std::string& base) noexcept try {
  for (const auto& entry : fs::directory_iterator(base, fs::directory_options::skip_permission_denied)) {
    if (entry.path().filename().string().starts_with(kPrefix)) remove_if_stale(entry.path().string());
  }
} catch (const std::exception&) {
  // Another launcher removed the entry meanwhile, or the base cannot be read: our job does not depend on it.
}

}  // namespace ddprun::launch
