// tcp_direct: collectives over TCP. Each rank has a connection to every other rank and sends its data to all of them
// ("direct"); an allreduce adds what it has received in the order of the ranks, so all ranks get the same bits.
// The contract is in ddprun/plugin/comm_plugin.h. Replace the transport by yours.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"

namespace {

using ddprun::CommError;
using ddprun::CommStatus;
using ddprun::DType;
using ddprun::Op;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kPiece = 1 << 16;  // bytes of an allreduce that are exchanged at once

// What this rank sends to a peer and receives from it. Nothing: do not talk to it.
struct Transfer {
  const char* send = nullptr;
  std::size_t to_send = 0;
  char* recv = nullptr;
  std::size_t to_recv = 0;
};

// Where a rank listens. Who connects says the listener's secret first, so a stranger is recognised.
struct Place {
  sockaddr_in address{};
  uint64_t secret = 0;
};
struct Greeting {
  uint64_t secret = 0;
  int64_t rank = -1;
};

// a becomes the reduction of a and b. Integers wrap, so they are added without a sign.
template <typename T>
void combine(T* a, const T* b, std::size_t count, Op op) {
  using Number = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
  for (std::size_t i = 0; i < count; ++i) {
    switch (op) {
      case Op::min: a[i] = std::min(a[i], b[i]); break;
      case Op::max: a[i] = std::max(a[i], b[i]); break;
      case Op::product: a[i] = static_cast<T>(static_cast<Number>(a[i]) * static_cast<Number>(b[i])); break;
      default: a[i] = static_cast<T>(static_cast<Number>(a[i]) + static_cast<Number>(b[i]));
    }
  }
}

class Backend final : public ddprun::CommBackend {
 public:
  explicit Backend(const ddprun::Host& host) : CommBackend(host), host_(host), peers_(host.size(), -1) {
    try {
      scratch_.resize(kPiece * static_cast<std::size_t>(size()));
      connect_all();
    } catch (...) {
      close_all();
      throw;
    }
  }
  ~Backend() override { close_all(); }

  ddprun::Work allreduce(const ddprun::Collective& call) override {
    switch (call.dtype) {
      case DType::float64: return reduce<double>(call);
      case DType::int32: return reduce<int32_t>(call);
      case DType::int64: return reduce<int64_t>(call);
      default: return reduce<float>(call);  // ddprun refuses the types that are not declared
    }
  }

  ddprun::Work broadcast(const ddprun::Collective& call) override {
    auto* data = static_cast<char*>(call.recv);
    const std::size_t bytes = call.count * ddprun::size_of(call.dtype);
    exchange(deadline(), [&](int peer) {
      if (rank() == call.root) return Transfer{.send = data, .to_send = bytes};
      return peer == call.root ? Transfer{.recv = data, .to_recv = bytes} : Transfer{};
    });
    return {*this, done_};
  }

  ddprun::Work allgather(const ddprun::Collective& call) override {
    const auto* mine = static_cast<const char*>(call.send);
    auto* all = static_cast<char*>(call.recv);
    const std::size_t bytes = call.count * ddprun::size_of(call.dtype);
    if (bytes > 0 && mine != all + rank() * bytes) std::memcpy(all + rank() * bytes, mine, bytes);
    exchange(deadline(), [&](int peer) {
      return Transfer{mine, bytes, bytes == 0 ? nullptr : all + peer * bytes, bytes};
    });
    return {*this, done_};
  }

  ddprun::Work barrier() override {
    const char byte = 0;
    exchange(deadline(), [&](int peer) { return Transfer{&byte, 1, &scratch_[static_cast<std::size_t>(peer)], 1}; });
    return {*this, done_};
  }

  void abort() noexcept override { aborted_ = true; }

 private:
  template <typename T>
  ddprun::Work reduce(const ddprun::Collective& call) {
    const auto* send = static_cast<const T*>(call.send);
    auto* recv = static_cast<T*>(call.recv);
    constexpr std::size_t kMost = kPiece / sizeof(T);
    const auto end = deadline();  // of all pieces together
    for (std::size_t first = 0; first < call.count; first += kMost) {
      const std::size_t count = std::min(kMost, call.count - first);
      const std::size_t bytes = count * sizeof(T);
      const auto* mine = reinterpret_cast<const char*>(send + first);
      exchange(end, [&](int peer) { return Transfer{mine, bytes, of(peer), bytes}; });
      std::memcpy(of(rank()), mine, bytes);
      T* result = recv + first;
      std::memcpy(result, of(0), bytes);
      for (int peer = 1; peer < size(); ++peer) combine(result, reinterpret_cast<T*>(of(peer)), count, call.op);
      if constexpr (std::is_floating_point_v<T>) {
        for (std::size_t i = 0; call.op == Op::avg && i < count; ++i) result[i] /= static_cast<T>(size());
      }
    }
    return {*this, done_};
  }
  Clock::time_point deadline() const { return Clock::now() + host_.deadline(); }
  char* of(int peer) { return scratch_.data() + kPiece * static_cast<std::size_t>(peer); }

  [[noreturn]] static void lost(int peer) {
    throw CommError(CommStatus::peer_lost, "rank " + std::to_string(peer) + " closed its connection");
  }
  [[noreturn]] static void failed(const std::string& what) {
    throw CommError(CommStatus::internal, what + ": " + std::strerror(errno));
  }

  // Waits a little for one of the descriptors. Throws at the deadline, and after an abort.
  void wait_for(std::vector<pollfd>& descriptors, Clock::time_point deadline, const std::string& what) const {
    constexpr int kMilliseconds = 10;  // an abort is noticed after this time
    if (poll(descriptors.data(), descriptors.size(), kMilliseconds) < 0 && errno != EINTR) failed("poll");
    if (aborted_ || host_.aborted()) throw CommError(CommStatus::aborted, "aborted while " + what);
    if (Clock::now() > deadline) throw CommError(CommStatus::timeout, "the deadline passed while " + what);
  }

  // Carries out the transfers with all peers at the same time.
  template <typename Function>
  void exchange(Clock::time_point deadline, Function transfer_with) {
    std::vector<Transfer> transfers(peers_.size());
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank()) transfers[static_cast<std::size_t>(peer)] = transfer_with(peer);
    }
    try {
      while (true) {
        std::vector<pollfd> descriptors;
        std::string waiting;
        for (int peer = 0; peer < size(); ++peer) {
          Transfer& transfer = transfers[static_cast<std::size_t>(peer)];
          move_bytes(peer, transfer);
          const int events = (transfer.to_send > 0 ? POLLOUT : 0) | (transfer.to_recv > 0 ? POLLIN : 0);
          if (events == 0) continue;
          descriptors.push_back({socket_of(peer), static_cast<short>(events), 0});
          waiting += (waiting.empty() ? "waiting for rank " : ", ") + std::to_string(peer);
        }
        if (descriptors.empty()) return;
        wait_for(descriptors, deadline, waiting);
      }
    } catch (...) {
      // The peers must not wait for this rank.
      for (const int peer : peers_) shutdown(peer, SHUT_RDWR);
      throw;
    }
  }

  // What send or recv has moved.
  static std::size_t moved(ssize_t result, int peer) {
    if (result < 0 && errno != EAGAIN && errno != EINTR) lost(peer);
    return result < 0 ? 0 : static_cast<std::size_t>(result);
  }

  // Sends once and receives once, so that the caller can look at the deadline in between.
  void move_bytes(int peer, Transfer& transfer) const {
    if (transfer.to_send > 0) {
      const auto sent =
          moved(send(socket_of(peer), transfer.send, transfer.to_send, MSG_DONTWAIT | MSG_NOSIGNAL), peer);
      transfer.send += sent;
      transfer.to_send -= sent;
    }
    if (transfer.to_recv > 0) {
      const ssize_t result = recv(socket_of(peer), transfer.recv, transfer.to_recv, MSG_DONTWAIT);
      if (result == 0) lost(peer);
      const auto got = moved(result, peer);
      transfer.recv += got;
      transfer.to_recv -= got;
    }
  }

  // Connects to the lower ranks and accepts the higher ones.
  void connect_all() {
    if (size() == 1) return;
    const auto end = deadline();
    Place own;
    sockaddr_in& address = own.address;
    address.sin_family = AF_INET;
    const std::string host = host_.address().empty() ? "127.0.0.1" : host_.address();
    if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
      throw CommError(CommStatus::unsupported, "this host has the address " + host + ": expected IPv4");
    }
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t length = sizeof address;
    std::string error;
    if (listener_ < 0 || bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        listen(listener_, size()) != 0 || getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
        getrandom(&own.secret, sizeof own.secret, 0) != sizeof own.secret) {
      error = "cannot listen at " + host + ": " + std::strerror(errno);
    }
    host_.fail_together(error);  // otherwise the others wait for this rank until the deadline
    std::vector<Place> places(peers_.size());
    host_.allgather(&own, sizeof own, places.data());
    for (int peer = 0; peer < rank(); ++peer) connect_to(peer, places[static_cast<std::size_t>(peer)], end);
    for (int missing = size() - 1 - rank(); missing > 0;) missing -= accept_one(own.secret, end) ? 1 : 0;
    for (const int peer : peers_) {
      const int on = 1;
      if (peer >= 0) setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    close(listener_);
    listener_ = -1;
  }

  void connect_to(int peer, const Place& place, Clock::time_point deadline) {
    const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0) failed("cannot make a socket");
    peers_[static_cast<std::size_t>(peer)] = made;  // close_all() closes it if something fails below
    int error = connect(made, reinterpret_cast<const sockaddr*>(&place.address), sizeof place.address) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      std::vector<pollfd> descriptors{{made, POLLOUT, 0}};
      while (descriptors[0].revents == 0) wait_for(descriptors, deadline, "connecting to rank " + std::to_string(peer));
      socklen_t length = sizeof error;
      getsockopt(made, SOL_SOCKET, SO_ERROR, &error, &length);
    }
    const Greeting greeting{place.secret, rank()};
    if (error != 0 || send(made, &greeting, sizeof greeting, MSG_NOSIGNAL) != sizeof greeting) lost(peer);
  }

  // False: something other than a rank has connected, and was turned away.
  bool accept_one(uint64_t secret, Clock::time_point deadline) {
    const std::string what = "waiting for the connections of other ranks";
    int made = -1;
    while ((made = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) < 0) {
      if (errno != EAGAIN && errno != EINTR) failed("cannot accept a connection");
      std::vector<pollfd> descriptors{{listener_, POLLIN, 0}};
      wait_for(descriptors, deadline, what);
    }
    int& own = peers_[static_cast<std::size_t>(rank())];
    own = made;  // close_all() closes it if something fails below
    Greeting greeting;
    const int all = sizeof greeting, one = 1;
    setsockopt(made, SOL_SOCKET, SO_RCVLOWAT, &all, sizeof all);  // poll waits for the whole greeting
    std::vector<pollfd> descriptors{{made, POLLIN, 0}};
    const auto patience = Clock::now() + std::chrono::seconds(1);  // a stranger may say nothing
    while (descriptors[0].revents == 0 && Clock::now() < patience) wait_for(descriptors, deadline, what);
    setsockopt(made, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof one);
    const bool complete = recv(made, &greeting, sizeof greeting, MSG_DONTWAIT) == sizeof greeting;
    own = -1;
    const bool is_rank = complete && greeting.secret == secret && greeting.rank > rank() && greeting.rank < size();
    if (!is_rank) {
      close(made);
      return false;
    }
    peers_[static_cast<std::size_t>(greeting.rank)] = made;
    return true;
  }

  int socket_of(int peer) const { return peers_[static_cast<std::size_t>(peer)]; }
  void close_all() {
    if (listener_ >= 0) close(listener_);
    for (const int peer : peers_) {
      if (peer >= 0) close(peer);
    }
  }

  const ddprun::Host host_;
  std::vector<int> peers_;  // the socket of each rank; -1: none
  int listener_ = -1;
  std::vector<char> scratch_;  // a piece of each rank
  std::atomic<bool> aborted_{false};
  ddprun::Request done_{{"direct", "tcp"}};  // a collective has ended when its call returns, so one is enough
};

constexpr ddprun_comm_algorithm kAlgorithms[] = {ddprun::algorithm(
    "direct", ddprun::bits(DType::float32, DType::float64, DType::int32, DType::int64), ddprun::kAllOps)};
// Declare your entries of comm.options as the last field; host.options() reads them (ddprun/plugin/options.hpp).
constexpr ddprun::CommPluginInfo kInfo = {"tcp_direct", "0.1.0", "", DDPRUN_CAP_HOST | DDPRUN_CAP_BLOCKING,
                                          kAlgorithms};

}  // namespace

DDPRUN_COMM_PLUGIN(Backend, kInfo);
