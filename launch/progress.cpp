#include "launch/progress.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/unique_fd.hpp"
#include "ddprun/error.hpp"

namespace ddprun::launch {
namespace {

static_assert(std::atomic<uint64_t>::is_always_lock_free, "the table is shared between processes");

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

}  // namespace

std::string text(const Progress& progress) {
  std::string text = progress.step > 0 ? "step " + std::to_string(progress.step) + " " : "";
  text += std::string("phase ") + name_of(progress.phase);
  if (progress.bucket >= 0) text += " bucket " + std::to_string(progress.bucket);
  return text;
}

ProgressTable::ProgressTable(const std::string& job_dir, int size) : size_(size) {
  const std::string path = job_dir.empty() ? "" : job_dir + "/progress";
  const auto bytes = static_cast<std::size_t>(size + 1) * sizeof(Slot);
  const auto fail = [&] { throw Error(ExitCode::rendezvous, "progress table " + path + ": " + std::strerror(errno)); };
  UniqueFd file;
  if (!path.empty()) {
    file = UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) fail();
    // A full disk is an error here, and not a bus error at the first store.
    if ((errno = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes))) != 0) fail();
  }
  const int flags = MAP_SHARED | (file ? 0 : MAP_ANONYMOUS);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file.get(), 0);
  if (memory == MAP_FAILED) fail();
  slots_ = std::launder(static_cast<Slot*>(memory));
}

ProgressTable::~ProgressTable() {
  ::munmap(slots_, static_cast<std::size_t>(size_ + 1) * sizeof(Slot));
}

void ProgressTable::set(int rank, Progress progress) {
  slots_[rank].word.store(pack(progress), std::memory_order_relaxed);
}

Progress ProgressTable::get(int rank) const {
  Progress progress = unpack(slots_[rank].word.load(std::memory_order_relaxed));
  progress.own_us = slots_[rank].own_us.load(std::memory_order_relaxed);
  return progress;
}

}  // namespace ddprun::launch
