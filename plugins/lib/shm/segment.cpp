#include "shm/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::shm {
namespace {

[[noreturn]] void refuse(uint64_t length, const std::string& why) {
  throw CommError(CommStatus::no_memory, "no " + std::to_string(length) + " bytes of shared memory: " + why);
}

std::string error_text(const char* call, int error) {
  return std::string(call) + ": " + std::strerror(error);
}

// Maps all pages at once: page faults in the first collective would count as communication. Null: see errno.
std::byte* map(int descriptor, uint64_t length) {
  void* const data = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0);
  return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

// Allocates all the memory now, so that none is missing later.
int allocate(int descriptor, uint64_t length) {
  while (fallocate(descriptor, 0, 0, static_cast<off_t>(length)) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

Segment::Segment(uint64_t length) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  length_ = (length + page - 1) / page * page;
  descriptor_ = memfd_create("ddprun_shm", MFD_CLOEXEC);
  if (descriptor_ < 0) refuse(length_, error_text("memfd_create", errno));
  if (const int error = allocate(descriptor_, length_); error != 0) {
    seal();
    refuse(length_, error_text("fallocate", error));
  }
  data_ = map(descriptor_, length_);
  if (data_ != nullptr) return;
  const int error = errno;
  seal();
  refuse(length_, error_text("mmap", error));
}

Segment::~Segment() {
  seal();
  munmap(data_, length_);
}

SegmentKey Segment::key() const {
  struct stat file = {};
  if (descriptor_ < 0 || fstat(descriptor_, &file) != 0) return {};
  return {getpid(), descriptor_, file.st_dev, file.st_ino, length_};
}

void Segment::seal() noexcept {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
}

Mapping::Mapping(const SegmentKey& key) {
  const std::string path = "/proc/" + std::to_string(key.pid) + "/fd/" + std::to_string(key.descriptor);
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) refuse(key.length, error_text(path.c_str(), errno));
  struct stat file = {};
  const bool is_it = fstat(descriptor, &file) == 0 && file.st_dev == key.device && file.st_ino == key.inode;
  data_ = is_it ? map(descriptor, key.length) : nullptr;
  const int error = errno;
  close(descriptor);
  if (!is_it) refuse(key.length, path + " is another file now");
  if (data_ == nullptr) refuse(key.length, error_text("mmap", error));
  length_ = key.length;
}

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, length_);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), length_(std::exchange(other.length_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(length_, other.length_);
  return *this;
}

}  // namespace ddprun::shm
