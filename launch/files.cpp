#include "launch/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/unique_fd.hpp"
#include "ddprun/error.hpp"

namespace ddprun::launch {
namespace {

std::error_code last_error() {
  return {errno, std::generic_category()};
}

std::error_code write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return last_error();
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

std::error_code publish(const std::string& folder, const std::string& name, std::string_view content) {
  static std::atomic<unsigned> serial{0};
  const std::string aside = folder + "/aside." + std::to_string(::getpid()) + "." + std::to_string(serial++);
  UniqueFd file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return last_error();
  std::error_code error = write_all(file.get(), content);
  // link() fails if the name exists; rename() would overwrite the file.
  if (!error && ::link(aside.c_str(), (folder + "/" + name).c_str()) != 0) error = last_error();
  ::unlink(aside.c_str());
  return error;
}

std::optional<std::string> read_whole(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) {
    if (errno == ENOENT) return std::nullopt;
    throw std::system_error(last_error(), path);
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw std::system_error(last_error(), path);
  std::string content(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t filled = 0;
  while (filled < content.size()) {
    const ssize_t got = ::read(file.get(), content.data() + filled, content.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw std::system_error(last_error(), path);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  content.resize(filled);
  return content;
}

void require_private(const std::string& folder) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ExitCode::rendezvous, "the job's folder " + folder + " " + why);
  };
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0) refuse(std::string("cannot be used: ") + std::strerror(errno));
  if (!S_ISDIR(status.st_mode)) refuse("is not a folder");
  if (status.st_uid != ::geteuid()) refuse("belongs to another user (uid " + std::to_string(status.st_uid) + ")");
  if ((status.st_mode & 077) != 0) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "%04o", status.st_mode & 07777U);
    refuse(std::string("can be entered by others (mode ") + mode + "); chmod 700 it");
  }
}

}  // namespace ddprun::launch
