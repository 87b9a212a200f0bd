#include "base/file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/text.hpp"
#include "ddprun/plugin/host.hpp"

namespace ddprun {
namespace {

namespace fs = std::filesystem;

// The number of a path in this process's folder of descriptors.
std::optional<int> descriptor_in(const fs::path& path) {
  std::error_code unread;
  const fs::path folder = fs::canonical(path.parent_path(), unread);
  if (folder.empty() || folder != fs::canonical("/proc/self/fd", unread)) return std::nullopt;
  return parse_number<int>(path.filename().string());
}

void write_and_close(OutputFile& file, std::string_view text) {
  std::fflush(stdout);  // the file may be stdout
  file.write(text);
  file.close();
}

}  // namespace

int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

int read_all(int fd, std::string& text, size_t most) {
  std::array<char, 1 << 16> part;
  while (text.size() < most) {
    const ssize_t got = ::read(fd, part.data(), std::min(part.size(), most - text.size()));
    if (got < 0 && errno != EINTR) return errno;
    if (got == 0) break;
    if (got > 0) text.append(part.data(), static_cast<size_t>(got));
  }
  return 0;
}

void throw_file_error(std::string_view what, const std::string& path, int number) {
  throw Error(ExitCode::failure,
              "cannot " + std::string(what) + " " + path + ": " + std::generic_category().message(number));
}

std::string read_text(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  const int error = file ? read_all(file.get(), text) : errno;
  if (error == EISDIR) throw Error(ExitCode::usage, path + ": is a folder");
  if (error != 0) throw Error(ExitCode::usage, path + ": " + std::strerror(error));
  return text;
}

OutputFile::OutputFile(std::string path, bool append)
    : path_(std::move(path)),
      fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | (append ? O_APPEND : O_TRUNC) | O_CLOEXEC, 0644)) {
  if (!fd_) throw_file_error("create", path_, errno);
}

void OutputFile::write(const void* data, size_t bytes) {
  if (const int error = write_all(fd_.get(), {static_cast<const char*>(data), bytes}); error != 0) {
    throw_file_error("write " + std::to_string(bytes) + " bytes to", path_, error);
  }
}

void OutputFile::sync() {
  // /dev/stdout and similar files cannot be synced and need not be.
  if (::fsync(fd_.get()) != 0 && errno != EINVAL) throw_file_error("sync", path_, errno);
}

void OutputFile::close() {
  if (fd_.reset() != 0) throw_file_error("close", path_, errno);
}

void sync_folder(const std::string& path) {
  const UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) throw_file_error("open folder", path, errno);
  const int failed = ::fsync(folder.get()) == 0 ? 0 : errno;
  // Some file systems (FUSE, 9p) have no fsync for folders; then nothing more can be done for a rename.
  if (failed != 0 && failed != EINVAL && failed != ENOSYS) throw_file_error("sync folder", path, failed);
}

std::string end_of_links(const std::string& path) {
  constexpr int kMostLinks = 40;  // the kernel's limit
  fs::path end = path;
  std::error_code unread;
  for (int links = 0; links < kMostLinks && !descriptor_in(end) && fs::is_symlink(end, unread); ++links) {
    end = end.parent_path() / fs::read_symlink(end, unread);
  }
  return end.string();
}

std::optional<int> descriptor_of(const std::string& path) {
  return descriptor_in(end_of_links(path));
}

void require_folder(const std::string& path, ExitCode code, const std::string& what) {
  const fs::path folder = fs::path(end_of_links(path)).parent_path();
  std::error_code ignored;
  if (folder.empty() || fs::is_directory(folder, ignored)) return;
  throw Error(code, what + ": there is no folder " + folder.string());
}

std::string aside_path(const std::string& path, int64_t process) {
  // Host names of containers may be equal, and process ids are.
  const std::size_t host = std::hash<std::string>{}(host_identity()) & 0xffffffff;
  return path + ".tmp-" + std::to_string(process) + "-" + hex(host, 1);
}

void replace_by(const std::string& path, const std::function<void(const std::string& aside)>& write) {
  const std::string aside = aside_path(path);
  try {
    write(aside);
    if (::rename(aside.c_str(), path.c_str()) != 0) throw_file_error("rename " + aside + " to", path, errno);
  } catch (...) {
    ::unlink(aside.c_str());
    throw;
  }
}

void replace_file(const std::string& path, std::string_view text) {
  require_folder(path, ExitCode::failure, "cannot write " + path);
  const std::string end = end_of_links(path);
  const auto descriptor = descriptor_in(end);
  std::error_code unread;
  const fs::file_status there = fs::symlink_status(end, unread);  // a link here is one of a circle
  if (descriptor || (fs::exists(there) && !fs::is_regular_file(there))) {
    const int fd = descriptor ? ::dup(*descriptor) : ::open(end.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) throw_file_error("write", path, errno);
    OutputFile file(path, fd);
    return write_and_close(file, text);
  }
  replace_by(end, [&](const std::string& aside) {
    OutputFile file(aside);
    write_and_close(file, text);
  });
}

}  // namespace ddprun
