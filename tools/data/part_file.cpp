#include "tools/data/part_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

namespace ddprun::fetch {

PartFile::PartFile(const std::string& final_path, int fd) : final_path_(final_path), file_(final_path + ".part", fd) {}

std::unique_ptr<PartFile> PartFile::lock(const std::string& final_path, const std::function<void()>& before_each) {
  const std::string path = final_path + ".part";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) throw_file_error("create", path, errno);
  std::unique_ptr<PartFile> part(new PartFile(final_path, fd));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) throw_file_error("lock", path, errno);
    return nullptr;
  }
  if (!part->still_there()) return nullptr;
  part->bytes_ = part->sum_.update_from(fd, path, before_each);
  return part;
}

// Between open and lock, the previous owner of the lock may have renamed or deleted the file.
bool PartFile::still_there() const {
  struct stat opened {
  }, named{};
  return ::fstat(file_.fd(), &opened) == 0 && ::stat(path().c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

void PartFile::append(const char* data, size_t bytes) {
  file_.write(data, bytes);
  sum_.update(data, bytes);
  bytes_ += static_cast<int64_t>(bytes);
}

void PartFile::restart() {
  if (::ftruncate(file_.fd(), 0) != 0) throw_file_error("empty", path(), errno);
  if (::lseek(file_.fd(), 0, SEEK_SET) < 0) throw_file_error("rewind", path(), errno);
  sum_.restart();
  bytes_ = 0;
}

void PartFile::finish() {
  file_.sync();
  if (::rename(path().c_str(), final_path_.c_str()) != 0) {
    throw_file_error("rename " + path() + " to", final_path_, errno);
  }
  const std::string folder = std::filesystem::path(final_path_).parent_path();
  sync_folder(folder.empty() ? "." : folder);
}

void PartFile::remove() {
  if (::unlink(path().c_str()) != 0) throw_file_error("remove", path(), errno);
}

}  // namespace ddprun::fetch
