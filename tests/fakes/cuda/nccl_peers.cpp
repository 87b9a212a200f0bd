#include "nccl_peers.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <utility>

namespace ddprun::fake_nccl {
namespace {

// An abstract socket, without a file: the first byte of its name is 0.
std::pair<sockaddr_un, socklen_t> address_of(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
}

void transfer(const std::function<ssize_t(std::size_t)>& some, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t moved = some(done);
    if (moved <= 0) {
      throw Failure(ncclRemoteError, "NET/Socket : socketProgress: Connection closed by remote peer");
    }
    done += static_cast<std::size_t>(moved);
  }
}

}  // namespace

Peers::Peers(const std::string& id, int rank, int size)
    : address_("ddprun-fake-nccl-" + id), rank_(rank), size_(size), thread_([this] { work(); }) {}

Peers::~Peers() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    for (const int socket : sockets_) shutdown(socket, SHUT_RDWR);
  }
  changed_.notify_all();
  thread_.join();
  for (const int socket : sockets_) close(socket);
  for (const Collective& left : queue_) left.finish();
}

void Peers::queue(Collective collective) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(collective));
  changed_.notify_all();
}

ncclResult_t Peers::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

std::string Peers::words() const {
  const std::lock_guard lock(mutex_);
  return words_;
}

void Peers::flush() {
  std::unique_lock lock(mutex_);
  changed_.wait(
      lock, [this] { return (queue_.empty() && !is_busy_) || (state_ != ncclSuccess && state_ != ncclInProgress); });
}

// A failed collective stays unfinished, like a kernel that waits for its peers, until the communicator is destroyed.
void Peers::work() try {
  meet();
  std::unique_lock lock(mutex_);
  state_ = ncclSuccess;
  while (true) {
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_ending_ || !queue_.empty(); });
    if (is_ending_) return;
    is_busy_ = true;
    lock.unlock();
    serve(queue_.front());  // only this thread removes from the front
    lock.lock();
    queue_.pop_front();
    is_busy_ = false;
  }
} catch (const Failure& failure) {
  const std::lock_guard lock(mutex_);
  state_ = failure.result;
  words_ = failure.what();
  changed_.notify_all();
}

int Peers::kept(int socket) {
  const std::lock_guard lock(mutex_);
  if (socket < 0 || is_ending_) throw Failure(ncclSystemError, "Call to socket failed");
  sockets_.push_back(socket);
  return socket;
}

void Peers::meet() {
  if (size_ == 1) return;
  const auto [address, length] = address_of(address_);
  const auto* const raw = reinterpret_cast<const sockaddr*>(&address);
  const int own = kept(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (rank_ > 0) {
    while (connect(own, raw, length) != 0) {  // until rank 0 listens
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::lock_guard lock(mutex_);
      if (is_ending_) throw Failure(ncclRemoteError, "Bootstrap : rank 0 is not there");
    }
    others_ = {own};
    return send_text(own, std::to_string(rank_));
  }
  if (bind(own, raw, length) != 0 || listen(own, size_) != 0) throw Failure(ncclSystemError, "Bootstrap : bind failed");
  others_.resize(static_cast<std::size_t>(size_) - 1);
  for (int i = 1; i < size_; ++i) {
    const int other = kept(accept4(own, nullptr, nullptr, SOCK_CLOEXEC));
    others_.at(static_cast<std::size_t>(std::stoi(receive_text(other))) - 1) = other;
  }
}

void Peers::serve(const Collective& collective) const {
  if (rank_ == 0) {
    collective.write(exchange_as_first(collective));
  } else {
    send_text(others_[0], collective.name);
    send_text(others_[0], collective.read());
    collective.write(receive_text(others_[0]));
  }
  collective.finish();
}

std::string Peers::exchange_as_first(const Collective& collective) const {
  std::vector<std::string> contributions = {collective.read()};
  for (const int other : others_) {
    const std::string name = receive_text(other);
    if (name != collective.name) {
      throw Failure(ncclSystemError,
                    "NET/Socket : peer message truncated : " + name + " instead of " + collective.name);
    }
    contributions.push_back(receive_text(other));
  }
  const std::vector<std::string> results = collective.rule(contributions);
  for (std::size_t i = 0; i < others_.size(); ++i) send_text(others_[i], results[i + 1]);
  return results[0];
}

void Peers::send_text(int socket, const std::string& text) const {
  const std::uint64_t bytes = text.size();
  const auto whole = std::string(reinterpret_cast<const char*>(&bytes), sizeof bytes) + text;
  transfer([&](std::size_t done) { return send(socket, whole.data() + done, whole.size() - done, MSG_NOSIGNAL); },
           whole.size());
}

std::string Peers::receive_text(int socket) const {
  std::uint64_t bytes = 0;
  const auto receive = [socket](void* memory, std::size_t size) {
    transfer([&](std::size_t done) { return recv(socket, static_cast<char*>(memory) + done, size - done, 0); }, size);
  };
  receive(&bytes, sizeof bytes);
  std::string text(bytes, '\0');
  receive(text.data(), bytes);
  return text;
}

}  // namespace ddprun::fake_nccl
