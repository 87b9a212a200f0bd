// How the ranks get the memory: rank 0 makes a memfd, which has no name and so leaves no file behind, whatever happens.
// The others open it as /proc/PID/fd/N of rank 0. host.allgather is the only rendezvous: first it says where the memory
// is, then that every rank has opened it, after which rank 0 closes its descriptor.
#include "segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sstream>

#include "ddprun/plugin/futex.hpp"
#include "ddprun/plugin/host.hpp"

namespace shm_direct {
namespace {

using ddprun::CommError;
using ddprun::CommStatus;

std::string why(const std::string& what) {
  return what + ": " + std::strerror(errno);
}

class Descriptor {
 public:
  ~Descriptor() {
    if (number >= 0) close(number);
  }
  int number = -1;
};

// What a rank publishes: "pid start descriptor", the identity of its host, and an error or nothing; a line each.
std::vector<std::string> lines_of(const std::string& card) {
  std::vector<std::string> lines(3);
  std::istringstream text(card);
  for (std::string& line : lines) std::getline(text, line);
  return lines;
}

}  // namespace

Segment::Segment(const ddprun::Host& host, std::size_t slot_bytes) : size_(host.size()), slot_bytes_(slot_bytes) {
  Descriptor made;
  std::string error = host.rank() == 0 ? make(made.number) : "";
  const pid_t pid = getpid();
  const auto cards = host.allgather(std::to_string(pid) + " " + std::to_string(ddprun::start_time(pid)) + " " +
                                    std::to_string(made.number) + "\n" + ddprun::host_identity() + "\n" + error);
  const auto first = lines_of(cards[0]);
  if (!first[2].empty()) throw CommError(CommStatus::internal, first[2]);
  for (int rank = 0; rank < size_; ++rank) {
    const auto card = lines_of(cards[static_cast<std::size_t>(rank)]);
    if (!card[1].empty() && card[1] == first[1]) continue;
    throw CommError(CommStatus::unsupported,
                    "rank " + std::to_string(rank) +
                        " does not share memory with rank 0: shm_direct needs all ranks on one host, without "
                        "containers of their own; use another backend");
  }

  std::istringstream numbers(first[0]);
  std::string owner, start, descriptor;
  numbers >> owner >> start >> descriptor;
  error = map("/proc/" + owner + "/fd/" + descriptor);
  // If one rank has failed, all fail. A rank that has mapped the memory unmaps it then, as no destructor will run.
  try {
    const auto errors = host.allgather(error);
    for (int rank = 0; rank < size_; ++rank) {
      const std::string& text = errors[static_cast<std::size_t>(rank)];
      if (!text.empty()) throw CommError(CommStatus::internal, "rank " + std::to_string(rank) + ": " + text);
    }
    watch(cards);
  } catch (...) {
    if (memory_ != nullptr) munmap(memory_, bytes());
    throw;
  }
}

Segment::~Segment() {
  munmap(memory_, bytes());
}

std::string Segment::make(int& descriptor) const {
  descriptor = memfd_create("ddprun-shm_direct", MFD_CLOEXEC);
  if (descriptor < 0) return why("memfd_create");
  // Reserves the memory now; otherwise a host without free memory would end the process later, with SIGBUS.
  errno = posix_fallocate(descriptor, 0, static_cast<off_t>(bytes()));
  return errno == 0 ? "" : why("cannot reserve " + std::to_string(bytes()) + " bytes of shared memory");
}

std::string Segment::map(const std::string& path) {
  Descriptor opened;
  opened.number = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (opened.number < 0) return why("cannot open the shared memory of rank 0, " + path);
  void* const memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, opened.number, 0);
  if (memory == MAP_FAILED) return why("cannot map the shared memory");
  memory_ = static_cast<std::byte*>(memory);  // zeros: every rank is at stage 0
  return "";
}

void Segment::watch(const std::vector<std::string>& cards) {
  for (const std::string& card : cards) {
    pid_t pid = 0;
    uint64_t start = 0;
    std::istringstream(card) >> pid >> start;
    watches_.push_back(pid == getpid() ? ddprun::ProcessWatch() : ddprun::ProcessWatch(pid, start));
  }
}

void Segment::ring() const noexcept {
  bell().rings.fetch_add(1);
  if (bell().sleepers.load() > 0) ddprun::futex_wake_all(bell().rings);
}

void Segment::sleep(uint32_t seen) const noexcept {
  bell().sleepers.fetch_add(1);
  ddprun::futex_wait(bell().rings, seen, std::chrono::milliseconds(5));
  bell().sleepers.fetch_sub(1);
}

}  // namespace shm_direct
