// An out-of-band allgather of a test's ranks, through shared memory that is created before the fork, so that a backend
// can be tested without the launcher's store.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

namespace ddprun::testing {

class Exchange {
 public:
  static constexpr int kChannels = 8;                // threads of a rank that can gather at once, one per channel
  static constexpr std::size_t kMaxBytes = 1 << 16;  // of one rank's contribution

  explicit Exchange(int size) : size_(size), bytes_(sizeof(Shared) + posts(size) * sizeof(Post)) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::runtime_error("exchange: mmap failed");
    new (memory_) Shared;
    for (std::size_t i = 0; i < posts(size); ++i)
      new (first_post() + i) Post;  // writes only the header: other pages stay unused
  }
  ~Exchange() { munmap(memory_, bytes_); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Gathers `bytes` bytes of every rank into recv (size * bytes), in rank order. `round` counts a rank's gathers on
  // this channel from 1; only one thread of a rank at a time uses a channel. Throws std::runtime_error at the deadline,
  // after give_up(), and if the ranks have different sizes.
  void allgather(int channel, int rank, uint32_t round, const void* send, std::size_t bytes, void* recv,
                 std::chrono::steady_clock::time_point deadline) {
    post(channel, rank, round, {static_cast<const char*>(send), bytes});
    for (int peer = 0; peer < size_; ++peer) {
      const std::string who = "rank " + std::to_string(peer);
      auto theirs = find(channel, peer, round);
      while (!theirs) {
        const bool is_last = has_given_up();  // read first: a rank may post, end and give up between the two
        theirs = find(channel, peer, round);
        if (theirs) break;
        if (is_last) throw std::runtime_error("exchange: gave up waiting for " + who + ": a rank is gone");
        if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("exchange: " + who + " did not come");
      }
      if (theirs->size() != bytes) {
        throw std::runtime_error("exchange: rank " + std::to_string(rank) + " has " + std::to_string(bytes) +
                                 " bytes, " + who + " has " + std::to_string(theirs->size()));
      }
      if (bytes > 0) theirs->copy(static_cast<char*>(recv) + static_cast<std::size_t>(peer) * bytes, bytes);
    }
  }
  // Ends all waiting, now and later, because a rank is gone. Any process, any thread.
  void give_up() { shared().given_up.store(true, std::memory_order_release); }

 private:
  struct alignas(64) Shared {
    std::atomic<bool> given_up{false};
  };
  struct alignas(64) Post {
    std::atomic<uint32_t> round{0};
    std::size_t bytes = 0;
    char data[kMaxBytes];
  };
  static_assert(std::atomic<uint32_t>::is_always_lock_free, "atomics with locks do not work between processes");

  void post(int channel, int rank, uint32_t round, std::string_view bytes) {
    if (channel < 0 || channel >= kChannels)
      throw std::runtime_error("exchange: no channel " + std::to_string(channel));
    if (bytes.size() > kMaxBytes) {
      throw std::runtime_error("exchange: " + std::to_string(bytes.size()) + " bytes are too many");
    }
    // A rank reaches round r + 2, which reuses these posts, only after all have posted r + 1 and so have read r.
    Post& mine = post_of(channel, rank, round);
    mine.bytes = bytes.size();
    bytes.copy(mine.data, bytes.size());
    mine.round.store(round, std::memory_order_release);
  }
  // What this rank has posted; nothing if it has not come within a moment.
  std::optional<std::string> find(int channel, int rank, uint32_t round) {
    const Post& theirs = post_of(channel, rank, round);
    if (theirs.round.load(std::memory_order_acquire) == round) return std::string(theirs.data, theirs.bytes);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    return std::nullopt;
  }
  bool has_given_up() { return shared().given_up.load(std::memory_order_acquire); }

  static std::size_t posts(int size) { return static_cast<std::size_t>(kChannels) * 2 * size; }
  Shared& shared() const { return *static_cast<Shared*>(memory_); }
  Post* first_post() const { return reinterpret_cast<Post*>(static_cast<char*>(memory_) + sizeof(Shared)); }
  Post& post_of(int channel, int rank, uint32_t round) const {
    return first_post()[(static_cast<std::size_t>(channel) * 2 + round % 2) * size_ + rank];
  }

  int size_;
  std::size_t bytes_;
  void* memory_ = nullptr;
};

}  // namespace ddprun::testing
