// Ends waits inside Gloo that would last until its timeout: those of a read or write whose message is on its way. One
// thread per communicator looks at the host's abort flag, and for hosts that are cut off. It then ends the connections.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "host/silence.hpp"
#include "sockets.hpp"

namespace ddprun::gloo_backend {

class ConnectionWatchdog {
 public:
  using Clock = std::chrono::steady_clock;

  // Collective, with the host's allgather.
  ConnectionWatchdog(const Host& host, const std::vector<host::Process>& processes);
  ~ConnectionWatchdog() { stop(); }

  // Starts watching. Called once. sockets[rank] is the connection to that rank; this rank has none.
  void watch(std::vector<Descriptor> sockets);
  // After watch(): the connection to that rank.
  int socket(int rank) const noexcept { return sockets_[static_cast<std::size_t>(rank)].get(); }
  // Ends the thread.
  void stop() noexcept;

  // begin() starts the deadline of a collective; remaining() is the time left, at least 1 ms.
  void begin() noexcept { deadline_ = Clock::now() + host_.deadline(); }
  std::chrono::milliseconds remaining() const noexcept;
  bool is_over() const noexcept { return Clock::now() >= deadline_; }
  // True if the collective's time is up, or so nearly that a peer's timeout counts as the same event.
  bool is_late() const noexcept;

  // After a loss: the ranks on hosts that are cut off (host/silence.hpp). The watchdog ends all connections then.
  std::vector<int> silent_ranks() const {
    return is_silent_.load(std::memory_order_acquire) ? silent_ranks_ : silence_.ranks_after_loss();
  }

  // Ends the connections: waits end, and every peer that waits for this rank notices at once. Any thread.
  void cut() noexcept;

 private:
  void run();

  const Host host_;
  Clock::time_point deadline_;
  host::Silence silence_;          // the thread's
  std::vector<int> silent_ranks_;  // complete once is_silent_
  std::atomic<bool> is_silent_{false};
  std::vector<Descriptor> sockets_;
  std::atomic<bool> watching_{false};  // sockets_ is complete
  std::atomic<bool> stop_{false};
  Descriptor wake_;  // eventfd
  std::thread thread_;
};

}  // namespace ddprun::gloo_backend
