#include "launch/progress.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/unique_fd.hpp"
#include "ddprun/error.hpp"

namespace ddprun::launch {
namespace {

static_assert(std::atomic<uint64_t>::is_always_lock_free, "the table is shared between processes");

constexpr uint64_t kMagic = 0x3270676f72706464;  // "ddprogp2"

// Step, phase and bucket in one word, so that a reader always sees values of the same moment: 40 bits of step, 8 of
// phase, 16 of bucket + 1.
uint64_t pack(Progress progress) {
  const auto step = static_cast<uint64_t>(std::clamp<int64_t>(progress.step, 0, (int64_t{1} << 40) - 1));
  const auto bucket = static_cast<uint64_t>(std::clamp<int32_t>(progress.bucket, -1, 0xfffe) + 1);
  return step << 24 | static_cast<uint64_t>(progress.phase) << 16 | bucket;
}

Progress unpack(uint64_t word) {
  return {static_cast<int64_t>(word >> 24), static_cast<Phase>(word >> 16 & 0xff),
          static_cast<int32_t>(word & 0xffff) - 1};
}

[[noreturn]] void fail_table(const std::string& path, const char* what) {
  throw Error(ExitCode::rendezvous, "progress table " + path + ": " + what + ": " + std::strerror(errno));
}

[[noreturn]] void refuse(const std::string& path, int size) {
  throw Error(ExitCode::rendezvous,
              "progress table " + path + ": made for another number of ranks than " + std::to_string(size));
}

UniqueFd open_file(const std::string& path, std::size_t bytes, bool create) {
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT | O_EXCL : 0), 0600));
  if (!file) fail_table(path, create ? "cannot be made" : "cannot be opened");
  // posix_fallocate: a full disk is an error here, and not a bus error at the first store.
  if (create && (errno = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes))) != 0)
    fail_table(path, "no space");
  return file;
}

std::string path_in(const std::string& job_dir) {
  return job_dir + "/progress";
}

}  // namespace

struct alignas(64) ProgressTable::Header {
  uint64_t magic;
  uint64_t size;
  std::atomic<uint64_t> stop;  // 1: requested
};

struct alignas(64) ProgressTable::Slot {  // a cache line per rank, because they write often
  std::atomic<uint64_t> word;
  std::atomic<int64_t> own_us;
};

std::string text(const Progress& progress) {
  std::string text = progress.step > 0 ? "step " + std::to_string(progress.step) + " " : "";
  text += std::string("phase ") + name_of(progress.phase);
  if (progress.bucket >= 0) text += " bucket " + std::to_string(progress.bucket);
  return text;
}

std::unique_ptr<ProgressTable> ProgressTable::create(const std::string& job_dir, int size) {
  return std::unique_ptr<ProgressTable>(new ProgressTable(path_in(job_dir), size, true));
}
std::unique_ptr<ProgressTable> ProgressTable::open(const std::string& job_dir, int size) {
  return std::unique_ptr<ProgressTable>(new ProgressTable(path_in(job_dir), size, false));
}
std::unique_ptr<ProgressTable> ProgressTable::in_memory(int size) {
  return std::unique_ptr<ProgressTable>(new ProgressTable("", size, true));
}

ProgressTable::ProgressTable(const std::string& path, int size, bool create)
    : size_(size), bytes_(sizeof(Header) + static_cast<std::size_t>(size) * sizeof(Slot)) {
  if (size < 1) throw Error(ExitCode::rendezvous, "progress table: a job has at least one rank");
  const UniqueFd file = path.empty() ? UniqueFd() : open_file(path, bytes_, create);
  struct stat status {};
  if (file && ::fstat(file.get(), &status) != 0) fail_table(path, "cannot be read");
  if (file && static_cast<std::size_t>(status.st_size) != bytes_) refuse(path, size);
  const int flags = MAP_SHARED | (file ? 0 : MAP_ANONYMOUS);
  void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, flags, file.get(), 0);
  if (memory == MAP_FAILED) fail_table(file ? path : "memory", "cannot be mapped");
  header_ = std::launder(static_cast<Header*>(memory));
  if (create) {
    header_->size = static_cast<uint64_t>(size);
    header_->magic = kMagic;
  } else if (header_->magic != kMagic || header_->size != static_cast<uint64_t>(size)) {
    ::munmap(memory, bytes_);
    refuse(path, size);
  }
}

ProgressTable::~ProgressTable() {
  ::munmap(header_, bytes_);
}

ProgressTable::Slot& ProgressTable::slot(int rank) const {
  if (rank < 0 || rank >= size_) throw Error(ExitCode::rendezvous, "progress table: no rank " + std::to_string(rank));
  return reinterpret_cast<Slot*>(header_ + 1)[rank];
}

void ProgressTable::set(int rank, Progress progress) {
  slot(rank).word.store(pack(progress), std::memory_order_relaxed);
}

void ProgressTable::set_own_us(int rank, int64_t microseconds) {
  slot(rank).own_us.store(microseconds, std::memory_order_relaxed);
}

Progress ProgressTable::get(int rank) const {
  Progress progress = unpack(slot(rank).word.load(std::memory_order_relaxed));
  progress.own_us = slot(rank).own_us.load(std::memory_order_relaxed);
  return progress;
}

void ProgressTable::request_stop() {
  header_->stop.store(1, std::memory_order_relaxed);
}
bool ProgressTable::stop_requested() const {
  return header_->stop.load(std::memory_order_relaxed) != 0;
}

}  // namespace ddprun::launch
