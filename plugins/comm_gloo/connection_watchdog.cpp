#include "connection_watchdog.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>

namespace ddprun::gloo_backend {
namespace {

constexpr int kPollMs = 20;   // polling interval of the host's abort flag
constexpr int kHungUpMs = 1;  // the same while Gloo still reads from a connection that has ended

}  // namespace

ConnectionWatchdog::ConnectionWatchdog(const Host& host, const std::vector<host::Place>& places)
    : host_(host),
      deadline_(Clock::now() + host.deadline()),
      silence_(host, places),
      lost_(static_cast<std::size_t>(host.size())),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_.get() < 0) throw CommError(CommStatus::internal, "no file descriptor left");
}

ConnectionWatchdog::~ConnectionWatchdog() {
  stop();
}

void ConnectionWatchdog::stop() noexcept {
  if (!thread_.joinable()) return;
  stop_ = true;
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

void ConnectionWatchdog::watch(std::vector<Descriptor> sockets, std::function<bool(int)> closed) {
  sockets_ = std::move(sockets);
  for (const auto& socket : sockets_) {
    if (socket.get() >= 0) host::ask_every_second(socket.get());
  }
  silence_.find_connections();
  closed_ = std::move(closed);
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

void ConnectionWatchdog::add(Interruptible* buffer) {
  const std::lock_guard lock(mutex_);
  buffers_.push_back(buffer);
}

void ConnectionWatchdog::remove(Interruptible* buffer) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(buffers_, buffer);
}

void ConnectionWatchdog::end_waits(int peer) noexcept {
  const std::lock_guard lock(mutex_);
  for (auto* buffer : buffers_) buffer->end_waits(peer);
}

void ConnectionWatchdog::abort() noexcept {
  if (aborted_.exchange(true)) return;
  end_waits(Interruptible::kAllPeers);
  cut();
}

void ConnectionWatchdog::cut() noexcept {
  if (!watching_.load(std::memory_order_acquire)) return;
  for (const auto& socket : sockets_) {
    if (socket.get() >= 0) shutdown(socket.get(), SHUT_RDWR);
  }
}

void ConnectionWatchdog::run() {
  std::vector<pollfd> polled;
  for (const auto& socket : sockets_) polled.push_back({socket.get(), POLLRDHUP, 0});  // poll ignores -1
  polled.push_back({wake_.get(), POLLIN, 0});
  std::vector<int> hung_up;
  while (!stop_) {
    if (poll(polled.data(), polled.size(), hung_up.empty() ? kPollMs : kHungUpMs) < 0) continue;
    if (host_.aborted()) abort();
    if (!is_silent_ && !silence_.ranks().empty()) {
      silent_ranks_ = silence_.ranks();
      is_silent_.store(true, std::memory_order_release);
      cut();
    }
    for (std::size_t rank = 0; rank < sockets_.size(); ++rank) {
      if (polled[rank].revents == 0) continue;
      hung_up.push_back(static_cast<int>(rank));
      polled[rank].fd = -1;
    }
    std::erase_if(hung_up, [&](int rank) {
      if (!closed_(rank)) return false;
      lost_[static_cast<std::size_t>(rank)] = true;
      end_waits(rank);
      return true;
    });
  }
}

}  // namespace ddprun::gloo_backend
