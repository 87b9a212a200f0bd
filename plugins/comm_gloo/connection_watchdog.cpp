#include "connection_watchdog.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>

namespace ddprun::gloo_backend {

ConnectionWatchdog::ConnectionWatchdog(const Host& host, const std::vector<host::Process>& processes)
    : host_(host),
      deadline_(Clock::now() + host.deadline()),
      silence_(host, processes),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_.get() < 0) throw CommError(CommStatus::internal, "no file descriptor left");
}

void ConnectionWatchdog::stop() noexcept {
  if (!thread_.joinable()) return;
  stop_ = true;
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

void ConnectionWatchdog::watch(std::vector<Descriptor> sockets) {
  sockets_ = std::move(sockets);
  for (const auto& socket : sockets_) {
    if (socket.get() >= 0) host::enable_keepalive(socket.get());
  }
  silence_.find_connections();
  watching_.store(true, std::memory_order_release);
  thread_ = std::thread(&ConnectionWatchdog::run, this);
}

std::chrono::milliseconds ConnectionWatchdog::remaining() const noexcept {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

bool ConnectionWatchdog::is_late() const noexcept {
  const auto margin = std::min<Clock::duration>(host_.deadline() / 10, std::chrono::seconds(1));
  return Clock::now() + margin >= deadline_;
}

void ConnectionWatchdog::cut() noexcept {
  if (!watching_.load(std::memory_order_acquire)) return;
  for (const auto& socket : sockets_) {
    if (socket.get() >= 0) shutdown(socket.get(), SHUT_RDWR);
  }
}

void ConnectionWatchdog::run() {
  constexpr int kLookMs = 20;
  pollfd wake = {wake_.get(), POLLIN, 0};
  for (bool is_cut = false; !stop_; poll(&wake, 1, kLookMs)) {
    if (is_cut) continue;
    if (!silence_.ranks().empty()) {
      silent_ranks_ = silence_.ranks();
      is_silent_.store(true, std::memory_order_release);
    }
    if (is_silent_ || host_.aborted()) {
      cut();
      is_cut = true;
    }
  }
}

}  // namespace ddprun::gloo_backend
