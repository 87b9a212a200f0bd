#include "nccl_peers.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
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
  for (const auto& left : queue_) std::visit([](const auto& work) { work.finish(); }, left);
}

void Peers::queue(std::variant<Collective, Exchange> work) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(work));
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
    std::visit([this](const auto& work) { serve(work); }, queue_.front());  // only this thread removes from the front
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

// Each rank connects to the lower ones, and accepts the higher ones.
void Peers::meet() {
  if (size_ == 1) return;
  others_.assign(static_cast<std::size_t>(size_), -1);
  const auto new_socket = [this] { return kept(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); };
  const auto [own, own_length] = address_of(address_ + "-" + std::to_string(rank_));
  const int listener = new_socket();
  if (bind(listener, reinterpret_cast<const sockaddr*>(&own), own_length) != 0 || listen(listener, size_) != 0) {
    throw Failure(ncclSystemError, "Bootstrap : bind failed");
  }
  for (int rank = 0; rank < rank_; ++rank) {
    const auto [address, length] = address_of(address_ + "-" + std::to_string(rank));
    const int other = others_[static_cast<std::size_t>(rank)] = new_socket();
    while (connect(other, reinterpret_cast<const sockaddr*>(&address), length) != 0) {  // until that rank listens
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::lock_guard lock(mutex_);
      if (is_ending_) throw Failure(ncclRemoteError, "Bootstrap : rank " + std::to_string(rank) + " is not there");
    }
    const int number = rank_;
    transfer([&](std::size_t) { return send(other, &number, sizeof number, MSG_NOSIGNAL); }, sizeof number);
  }
  for (int rank = rank_ + 1; rank < size_; ++rank) {
    const int other = kept(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    int number = 0;
    transfer([&](std::size_t) { return recv(other, &number, sizeof number, MSG_WAITALL); }, sizeof number);
    others_.at(static_cast<std::size_t>(number)) = other;
  }
}

void Peers::serve(const Collective& collective) const {
  if (rank_ == 0) {
    collective.write(exchange_as_first(collective));
  } else {
    send_text(0, collective.name);
    send_text(0, collective.read());
    collective.write(receive_text(0));
  }
  collective.finish();
}

// One peer after another. Of two ranks the lower one sends first; so no two ranks wait for each other.
void Peers::serve(const Exchange& exchange) const {
  exchange.begin();
  const auto with = [](const std::vector<Block>& blocks, int peer) {
    const auto found =
        std::find_if(blocks.begin(), blocks.end(), [=](const Block& block) { return block.peer == peer; });
    return found == blocks.end() ? Block{nullptr, 0, peer} : *found;
  };
  for (int peer = 0; peer < size_; ++peer) {
    const Block out = with(exchange.sent, peer), in = with(exchange.received, peer);
    const auto send = [&] {
      if (out.bytes == 0) return;
      send_text(peer, "Exchange");
      send_text(peer, {static_cast<const char*>(out.data), out.bytes});
    };
    if (peer == rank_) {
      if (out.bytes > 0) std::memcpy(in.data, out.data, out.bytes);
      continue;
    }
    if (rank_ < peer) send();
    if (in.bytes > 0) {
      expect(peer, "Exchange");
      receive_text(peer).copy(static_cast<char*>(in.data), in.bytes);
    }
    if (rank_ > peer) send();
  }
  exchange.finish();
}

std::string Peers::exchange_as_first(const Collective& collective) const {
  std::vector<std::string> contributions = {collective.read()};
  for (int rank = 1; rank < size_; ++rank) {
    expect(rank, collective.name);
    contributions.push_back(receive_text(rank));
  }
  const std::vector<std::string> results = collective.rule(contributions);
  for (int rank = 1; rank < size_; ++rank) send_text(rank, results[static_cast<std::size_t>(rank)]);
  return results[0];
}

void Peers::expect(int rank, const std::string& name) const {
  const std::string came = receive_text(rank);
  if (came == name) return;
  throw Failure(ncclSystemError, "NET/Socket : peer message truncated : " + came + " instead of " + name);
}

void Peers::send_text(int rank, const std::string& text) const {
  const int socket = others_[static_cast<std::size_t>(rank)];
  const std::uint64_t bytes = text.size();
  const auto whole = std::string(reinterpret_cast<const char*>(&bytes), sizeof bytes) + text;
  transfer([&](std::size_t done) { return send(socket, whole.data() + done, whole.size() - done, MSG_NOSIGNAL); },
           whole.size());
}

std::string Peers::receive_text(int rank) const {
  const int socket = others_[static_cast<std::size_t>(rank)];
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
