// Ends waits that would never end. Gloo wakes a waiting thread when a connection ends, but not if the message that it
// waits for is half-way through (measured with 0.5 of 2022: a peer killed during a large transfer is seen only at the
// timeout), and it cannot be interrupted at all. So every wait of this plugin goes through an InterruptibleBuffer
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
#include "sockets.hpp"

namespace ddprun::gloo_backend {

// A wait that the watchdog can end. end_wait: of the buffer's waits, those on `peer`, or all with kAllPeers; any
// thread.
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

  explicit ConnectionWatchdog(const Host& host);
  ~ConnectionWatchdog();

  // Ends the thread. After it, neither `closed` nor a buffer is used any more.
  void stop() noexcept;

  // Starts watching. sockets[rank] is the connection to that rank, none for this rank. closed(rank) tells whether Gloo
  // has read that connection to its end. Called once.
  void watch(std::vector<Descriptor> sockets, std::function<bool(int)> closed);

  // The deadline of the collective that begins now, and what is left of it (at least 1 ms).
  void begin() noexcept { deadline_ = Clock::now() + host_.deadline(); }
  std::chrono::milliseconds remaining() const noexcept;
  bool is_over() const noexcept { return Clock::now() >= deadline_; }
  // True when the collective's time is up, or so nearly that a peer's giving up is the same event.
  bool is_late() const noexcept;

  void add(Interruptible* buffer);
  void remove(Interruptible* buffer) noexcept;

  bool is_aborted() const noexcept { return aborted_; }
  // True once no message of that rank can arrive any more and all that did have been delivered.
  bool is_lost(int rank) const noexcept { return lost_[static_cast<std::size_t>(rank)]; }

  // Ends all waits, now and later, and the connections. Any thread.
  void abort() noexcept;
  // Ends the connections, so that every peer that waits for this rank is told at once. Any thread.
  void cut() noexcept;

 private:
  void run();
  void end_waits(int peer) noexcept;

  const Host host_;
  Clock::time_point deadline_;
  std::atomic<bool> aborted_{false};
  std::vector<std::atomic<bool>> lost_;
  std::mutex mutex_;  // buffers_
  std::vector<Interruptible*> buffers_;  // those of one collective: few, and their memory is kept
  std::vector<Descriptor> sockets_;
  std::function<bool(int)> closed_;
  std::atomic<bool> watching_{false};  // sockets_ is complete
  std::atomic<bool> stop_{false};
  Descriptor wake_;  // eventfd
  std::thread thread_;
};

}  // namespace ddprun::gloo_backend
