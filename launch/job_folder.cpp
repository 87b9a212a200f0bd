#include "launch/job_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/file.hpp"
#include "base/unique_fd.hpp"
#include "ddprun/error.hpp"
#include "launch/failure.hpp"
#include "launch/net/secret.hpp"
#include "launch/rendezvous.hpp"

namespace ddprun::launch {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::chrono::microseconds kLongestPause{1000};  // between two tests for a key

// Hexadecimal digits: a key may have a '/'. No other file in the job's folder has such a name.
std::string file_name(const std::string& key) {
  return "key." + to_hex(key);
}

class FolderStore : public Store {
 public:
  explicit FolderStore(std::string folder) : folder_(std::move(folder)) { require_private(folder_); }

  void set(const std::string& key, std::string_view value) override {
    const std::error_code error = publish(folder_, file_name(key), value);
    if (error == std::errc::file_exists) {
      throw Error(ExitCode::rendezvous, "store: the key \"" + key + "\" is set already; each is set once per job");
    }
    if (error) {
      throw Error(ExitCode::rendezvous, "store: cannot keep the key \"" + key + "\" (" + std::to_string(value.size()) +
                                            " bytes) in " + folder_ + ": " + error.message());
    }
  }

  std::optional<std::string> get(const std::string& key, milliseconds timeout) override {
    const std::string path = folder_ + "/" + file_name(key);
    const auto begin = Clock::now();
    for (std::chrono::microseconds pause{50};; pause = std::min(2 * pause, kLongestPause)) {
      const auto failure = first_failure(folder_);
      // After the check for a failure, so that a key set before the failure is found.
      if (auto value = read_whole(path)) return value;
      if (failure) {  // the launcher reports the first cause; this is a consequence
        throw Error(ExitCode::peer, "rank " + std::to_string(failure->rank) + " failed while this one waited for \"" +
                                        key + "\": " + failure->message);
      }
      const auto waited = std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
      if (waited >= timeout) break;
      std::this_thread::sleep_for(std::min<std::chrono::microseconds>(pause, timeout - waited));
    }
    require_private(folder_);  // a folder that is gone is an error
    return std::nullopt;
  }

 private:
  const std::string folder_;
};

}  // namespace

std::string job_folder_base() {
  struct stat status {};
  const auto can_write = [&](const char* folder) {
    return folder != nullptr && *folder == '/' && ::stat(folder, &status) == 0 && S_ISDIR(status.st_mode) &&
           ::access(folder, W_OK | X_OK) == 0;
  };
  // After su or sudo the variable still names the other user's folder.
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (can_write(runtime) && status.st_uid == ::geteuid()) return runtime;
  const char* temporary = std::getenv("TMPDIR");
  return can_write(temporary) ? temporary : "/tmp";
}

JobFolder::JobFolder() : path_(job_folder_base() + "/ddprun-job-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) {
    throw Error(ExitCode::failure, "cannot make the job's folder " + path_ + ": " + std::strerror(errno) +
                                       "; set XDG_RUNTIME_DIR to a folder of this user, or TMPDIR to a folder in which "
                                       "this user may write");
  }
}

JobFolder::~JobFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void require_private(const std::string& folder) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ExitCode::rendezvous, "the job's folder " + folder + " " + why);
  };
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0) refuse(std::string("cannot be used: ") + std::strerror(errno));
  if (!S_ISDIR(status.st_mode)) refuse("is not a folder");
  if (status.st_uid != ::geteuid()) refuse("belongs to another user (uid " + std::to_string(status.st_uid) + ")");
  if ((status.st_mode & 077) != 0) refuse("can be entered by others; chmod 700 it");
}

std::error_code publish(const std::string& folder, const std::string& name, std::string_view content) {
  static std::atomic<unsigned> serial{0};
  const std::string aside = folder + "/aside." + std::to_string(::getpid()) + "." + std::to_string(serial++);
  const UniqueFd file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return {errno, std::generic_category()};
  int error = write_all(file.get(), content);
  // link() fails if the name exists; rename() would overwrite the file.
  if (error == 0 && ::link(aside.c_str(), (folder + "/" + name).c_str()) != 0) error = errno;
  ::unlink(aside.c_str());
  return {error, std::generic_category()};
}

std::optional<std::string> read_whole(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file && errno == ENOENT) return std::nullopt;
  std::string content;
  const int error = file ? read_all(file.get(), content) : errno;
  if (error != 0) throw Error(ExitCode::rendezvous, "cannot read " + path + ": " + std::strerror(error));
  return content;
}

std::unique_ptr<Store> folder_store(const std::string& folder) {
  return std::make_unique<FolderStore>(folder);
}

}  // namespace ddprun::launch
