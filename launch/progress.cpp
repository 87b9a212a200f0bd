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

struct alignas(64) Header {
  uint64_t magic;
  uint64_t size;
  std::atomic<uint64_t> stop;  // 1: requested
};

struct alignas(64) Slot {  // a cache line per rank, because they write often
  std::atomic<uint64_t> word;
  std::atomic<int64_t> own_us;
};

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

class MappedTable : public ProgressTable {
 public:
  explicit MappedTable(int size) : size_(size), bytes_(bytes_for(size)), memory_(map("memory", -1)) { initialize(); }

  MappedTable(const std::string& path, int size, bool create) : size_(size), bytes_(bytes_for(size)) {
    const UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT | O_EXCL : 0), 0600));
    if (!file) fail_table(path, create ? "cannot be made" : "cannot be opened");
    // posix_fallocate: a full disk is an error here, and not a bus error at the first store.
    if (create && (errno = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes_))) != 0)
      fail_table(path, "no space");
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) fail_table(path, "cannot be read");
    if (static_cast<std::size_t>(status.st_size) != bytes_) refuse(path);
    memory_ = map(path, file.get());
    if (create) {
      initialize();
    } else if (header().magic != kMagic || header().size != static_cast<uint64_t>(size)) {
      ::munmap(memory_, bytes_);
      refuse(path);
    }
  }

  ~MappedTable() override { ::munmap(memory_, bytes_); }
  MappedTable(const MappedTable&) = delete;
  MappedTable& operator=(const MappedTable&) = delete;

  void set(int rank, Progress progress) override { slot(rank).word.store(pack(progress), std::memory_order_relaxed); }

  void set_own_us(int rank, int64_t microseconds) override {
    slot(rank).own_us.store(microseconds, std::memory_order_relaxed);
  }

  Progress get(int rank) const override {
    Progress progress = unpack(slot(rank).word.load(std::memory_order_relaxed));
    progress.own_us = slot(rank).own_us.load(std::memory_order_relaxed);
    return progress;
  }

  void request_stop() override { header().stop.store(1, std::memory_order_relaxed); }
  bool stop_requested() const override { return header().stop.load(std::memory_order_relaxed) != 0; }

 private:
  static std::size_t bytes_for(int size) {
    if (size < 1) throw Error(ExitCode::rendezvous, "progress table: a job has at least one rank");
    return sizeof(Header) + static_cast<std::size_t>(size) * sizeof(Slot);
  }

  // file: a descriptor; -1: memory without a file.
  std::byte* map(const std::string& name, int file) const {
    const int flags = MAP_SHARED | (file < 0 ? MAP_ANONYMOUS : 0);
    void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, flags, file, 0);
    if (memory == MAP_FAILED) fail_table(name, "cannot be mapped");
    return static_cast<std::byte*>(memory);
  }

  void initialize() {
    header().size = static_cast<uint64_t>(size_);
    header().magic = kMagic;
  }

  [[noreturn]] void refuse(const std::string& path) const {
    throw Error(ExitCode::rendezvous,
                "progress table " + path + ": made for another number of ranks than " + std::to_string(size_));
  }

  Header& header() const { return *std::launder(reinterpret_cast<Header*>(memory_)); }
  Slot& slot(int rank) const {
    if (rank < 0 || rank >= size_) throw Error(ExitCode::rendezvous, "progress table: no rank " + std::to_string(rank));
    return reinterpret_cast<Slot*>(memory_ + sizeof(Header))[rank];
  }

  const int size_;
  const std::size_t bytes_;
  std::byte* memory_ = nullptr;
};

std::string path_in(const std::string& job_dir) {
  return job_dir + "/progress";
}

}  // namespace

std::string text(const Progress& progress) {
  std::string text = progress.step > 0 ? "step " + std::to_string(progress.step) + " " : "";
  text += std::string("phase ") + name_of(progress.phase);
  if (progress.bucket >= 0) text += " bucket " + std::to_string(progress.bucket);
  return text;
}

std::unique_ptr<ProgressTable> ProgressTable::create(const std::string& job_dir, int size) {
  return std::make_unique<MappedTable>(path_in(job_dir), size, true);
}

std::unique_ptr<ProgressTable> ProgressTable::open(const std::string& job_dir, int size) {
  return std::make_unique<MappedTable>(path_in(job_dir), size, false);
}

std::unique_ptr<ProgressTable> ProgressTable::in_memory(int size) {
  return std::make_unique<MappedTable>(size);
}

}  // namespace ddprun::launch
