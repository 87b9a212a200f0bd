#include "comm/table_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "ddprun/error.hpp"

namespace ddprun::comm {
namespace {

[[noreturn]] void fail(const std::string& path, int error) {
  throw Error(ExitCode::rendezvous, "fingerprint table " + path + ": " + std::strerror(error));
}

// Gives the file its size. All ranks do: reserving the same range twice is harmless, and with the blocks reserved a
// full disk is an error here and not a SIGBUS later.
void reserve(int descriptor, const std::string& path, std::size_t bytes) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail(path, errno);
  const auto found = static_cast<std::size_t>(status.st_size);
  if (found != 0 && found != bytes) {
    throw Error(ExitCode::rendezvous, "fingerprint table " + path + ": made for " +
                                          std::to_string(found / sizeof(TableMember)) + " ranks, not for " +
                                          std::to_string(bytes / sizeof(TableMember)));
  }
  const int error = ::posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
  if (error != 0) fail(path, error);
}

}  // namespace

TableMemory::TableMemory(std::string path, int size) : path_(std::move(path)) {
  const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(TableMember);
  const int descriptor = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) fail(path_, errno);
  void* memory = MAP_FAILED;
  try {
    reserve(descriptor, path_, bytes);
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) fail(path_, errno);
  } catch (...) {
    ::close(descriptor);
    throw;
  }
  ::close(descriptor);
  members_ = {static_cast<TableMember*>(memory), static_cast<std::size_t>(size)};
}

TableMemory::~TableMemory() {
  ::munmap(members_.data(), members_.size_bytes());
}

void TableMemory::remove_file() const noexcept {
  ::unlink(path_.c_str());
}

std::shared_ptr<TableMemory> map_table(const std::string& path, int size) {
  return std::make_shared<TableMemory>(path, size);
}

}  // namespace ddprun::comm
