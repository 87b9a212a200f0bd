// Ends waits that would never end. Gloo wakes a waiting thread when a connection ends, but not in the middle of a
// message (measured with Gloo 0.5 of 2022: it notices a peer killed during a large transfer only at the timeout).
// Gloo's waits cannot be interrupted either. So every wait of this plugin goes through an InterruptibleBuffer
// (transport.hpp), and one thread per communicator watches the connections and the host's abort flag.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "host/silence.hpp"
#include "sockets.hpp"

namespace ddprun::gloo_backend {

// A wait that the watchdog can end. end_waits ends the buffer's waits for `peer`, or all with kAllPeers. Any thread.
class Interruptible {
 public:
  static constexpr int kAllPeers = -1;
  virtual void end_waits(int peer) noexcept = 0;

 protected:
  ~Interruptible() = default;
};

class ConnectionWatchdog {
 public:
  using Clock = std::chrono::steady_clock;

  // Collective, with the host's allgather.
  ConnectionWatchdog(const Host& host, const std::vector<host::Place>& places);
  ~ConnectionWatchdog();

  // Ends the thread. After that, neither `closed` nor a buffer is used.
  void stop() noexcept;

  // Starts watching. Called once. sockets[rank] is the connection to that rank; this rank has none. closed(rank)
  // returns whether Gloo has read that connection to its end.
  void watch(std::vector<Descriptor> sockets, std::function<bool(int)> closed);

  // begin() starts the deadline of a collective; remaining() is the time left, at least 1 ms.
  void begin() noexcept { deadline_ = Clock::now() + host_.deadline(); }
  std::chrono::milliseconds remaining() const noexcept;
  bool is_over() const noexcept { return Clock::now() >= deadline_; }
  // True if the collective's time is up, or so nearly that a peer's timeout counts as the same event.
  bool is_late() const noexcept;

  void add(Interruptible* buffer);
  void remove(Interruptible* buffer) noexcept;

  bool is_aborted() const noexcept { return aborted_; }
  // True once that rank's last message has been delivered, and no more can arrive.
  bool is_lost(int rank) const noexcept { return lost_[static_cast<std::size_t>(rank)]; }
  // After a loss: the ranks on hosts that are cut off (host/silence.hpp). The watchdog ends all connections then.
  std::vector<int> silent_ranks() const {
    return is_silent_.load(std::memory_order_acquire) ? silent_ranks_ : silence_.ranks_after_loss();
  }

  // Ends all waits, now and later, and all connections. Any thread.
  void abort() noexcept;
  // Ends the connections, so that every peer that waits for this rank notices at once. Any thread.
  void cut() noexcept;

 private:
  void run();
  void end_waits(int peer) noexcept;

  const Host host_;
  Clock::time_point deadline_;
  host::Silence silence_;          // the thread's
  std::vector<int> silent_ranks_;  // complete once is_silent_
  std::atomic<bool> is_silent_{false};
  std::atomic<bool> aborted_{false};
  std::vector<std::atomic<bool>> lost_;
  std::mutex mutex_;                     // buffers_
  std::vector<Interruptible*> buffers_;  // of one collective, so few
  std::vector<Descriptor> sockets_;
  std::function<bool(int)> closed_;
  std::atomic<bool> watching_{false};  // sockets_ is complete
  std::atomic<bool> stop_{false};
  Descriptor wake_;  // eventfd
  std::thread thread_;
};

}  // namespace ddprun::gloo_backend
