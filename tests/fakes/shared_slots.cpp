#include "shared_slots.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

namespace fakes {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
  throw ddprun::CommError(ddprun::CommStatus::internal, what + ": " + std::strerror(errno));
}

}  // namespace

struct SharedSlots::Head {
  std::atomic<uint32_t> arrived;
  std::atomic<uint32_t> round;
};

struct SharedSlots::Lane {
  std::atomic<uint32_t> sent, taken;  // pieces
  std::byte data[kLaneBytes];
};

SharedSlots::SharedSlots(const ddprun::Host& host)
    : host_(host),
      bytes_(sizeof(Head) + static_cast<std::size_t>(host.size()) * kSlotBytes +
             static_cast<std::size_t>(host.size() * host.size()) * sizeof(Lane)) {
  int descriptor = -1;
  std::string path;
  if (host.rank() == 0) {
    descriptor = ::memfd_create("ddprun-fake", MFD_CLOEXEC);
    if (descriptor < 0 || ::ftruncate(descriptor, static_cast<off_t>(bytes_)) != 0) fail("memfd_create");
    path = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(descriptor);
  }
  path = host.allgather(path).front();
  if (host.rank() != 0) descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) fail(path);
  map(descriptor);
  for (const std::string& pid : host.allgather(std::to_string(::getpid()))) {
    peers_.push_back(static_cast<int>(::syscall(SYS_pidfd_open, std::stoi(pid), 0)));
  }
  ::close(descriptor);
}

void SharedSlots::map(int descriptor) {
  void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) fail("mmap");
  head_ = static_cast<Head*>(memory);
}

SharedSlots::~SharedSlots() {
  for (const int peer : peers_) ::close(peer);
  ::munmap(head_, bytes_);
}

std::byte* SharedSlots::slot(int rank) const {
  return reinterpret_cast<std::byte*>(head_ + 1) + static_cast<std::size_t>(rank) * kSlotBytes;
}

void SharedSlots::meet() {
  const uint32_t round = head_->round.load();
  if (head_->arrived.fetch_add(1) + 1 < static_cast<uint32_t>(host_.size())) {
    return wait_until([&] { return head_->round.load() == round + 1; });
  }
  head_->arrived.store(0);
  head_->round.store(round + 1);
}

SharedSlots::Lane& SharedSlots::lane(int from, int to) const {
  return reinterpret_cast<Lane*>(slot(host_.size()))[from * host_.size() + to];
}

void SharedSlots::put(int to, const void* data, std::size_t bytes) {
  Lane& mine = lane(host_.rank(), to);
  wait_until([&] { return mine.taken.load() == mine.sent.load(); });
  std::memcpy(mine.data, data, bytes);
  ++mine.sent;
}

void SharedSlots::take(int from, void* data, std::size_t bytes) {
  Lane& theirs = lane(from, host_.rank());
  wait_until([&] { return theirs.sent.load() != theirs.taken.load(); });
  std::memcpy(data, theirs.data, bytes);
  ++theirs.taken;
}

template <class Ready>
void SharedSlots::wait_until(Ready ready) {
  constexpr int kYields = 200;
  const auto deadline = Clock::now() + host_.deadline();
  for (int turn = 0; !ready(); ++turn) {
    if (aborted_.load() || host_.aborted()) throw ddprun::CommError(ddprun::CommStatus::aborted, "aborted");
    if (turn < kYields) {
      ::sched_yield();
      continue;
    }
    if (Clock::now() > deadline) throw ddprun::CommError(ddprun::CommStatus::timeout, "not all ranks came in time");
    require_peers();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void SharedSlots::require_peers() const {
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    pollfd ended{peers_[rank], POLLIN, 0};
    if (peers_[rank] < 0 || ::poll(&ended, 1, 0) == 1) {
      throw ddprun::CommError(ddprun::CommStatus::peer_lost, "rank " + std::to_string(rank) + " has ended");
    }
  }
}

}  // namespace fakes
