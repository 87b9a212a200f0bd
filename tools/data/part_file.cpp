#include "tools/data/transfer.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/algorithm/hex.hpp>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iterator>

#include "base/unique_fd.hpp"
#include "ddprun/error.hpp"

namespace ddprun::fetch {

std::string sha256_of(const std::string& path, const std::function<void()>& before_each) {
  constexpr std::size_t kChunk = 1 << 18;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) throw_file_error("open", path, errno);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> sum(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  bool good = sum != nullptr && EVP_DigestInit_ex(sum.get(), EVP_sha256(), nullptr) == 1;
  std::string chunk;
  do {
    before_each();
    chunk.clear();
    if (const int error = read_all(file.get(), chunk, kChunk); error != 0) throw_file_error("read", path, error);
    good = good && EVP_DigestUpdate(sum.get(), chunk.data(), chunk.size()) == 1;
  } while (!chunk.empty());
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  if (!good || EVP_DigestFinal_ex(sum.get(), digest, &bytes) != 1) {
    throw Error(ExitCode::failure, "OpenSSL cannot compute SHA-256 here");  // a policy may forbid it
  }
  std::string text;
  boost::algorithm::hex_lower(digest, digest + bytes, std::back_inserter(text));
  return text;
}

PartFile::PartFile(const std::string& final_path, int fd) : final_path_(final_path), file_(final_path + ".part", fd) {}

std::unique_ptr<PartFile> PartFile::lock(const std::string& final_path) {
  const std::string path = final_path + ".part";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) throw_file_error("create", path, errno);
  std::unique_ptr<PartFile> part(new PartFile(final_path, fd));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) throw_file_error("lock", path, errno);
    return nullptr;
  }
  if (!part->still_there()) return nullptr;
  part->bytes_ = ::lseek(fd, 0, SEEK_END);
  if (part->bytes_ < 0) throw_file_error("seek in", path, errno);
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
  bytes_ += static_cast<int64_t>(bytes);
}

void PartFile::restart() {
  if (::ftruncate(file_.fd(), 0) != 0) throw_file_error("empty", path(), errno);
  if (::lseek(file_.fd(), 0, SEEK_SET) < 0) throw_file_error("rewind", path(), errno);
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
