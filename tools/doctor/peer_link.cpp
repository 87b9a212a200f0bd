#include "tools/doctor/peer_link.hpp"

#include <endian.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <list>
#include <thread>
#include <vector>

#include "ddprun/error.hpp"
#include "tools/doctor/socket_io.hpp"

namespace ddprun::doctor {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// A connection: the token, then requests. A number is 8 bytes, big-endian.
//   ping             -> the clock, in nanoseconds since 1970
//   stream, duration -> (the client sends bytes until the answer comes) the bytes that came, and in how many
//                       nanoseconds. The server counts for `duration` milliseconds from the first byte on, so a slow
//                       network has nothing to drain. The last request of a connection.
constexpr char kPing = 'P';
constexpr char kStream = 'S';

constexpr std::size_t kTokenLength = 32;
constexpr seconds kTokenLimit{5};
constexpr seconds kIdleLimit{30};
constexpr uint64_t kLongestStream = 60'000;  // milliseconds
constexpr std::size_t kMostConnections = 64;
constexpr std::size_t kBlock = 1 << 18;
constexpr int kWarmup = 5;
constexpr int kPings = 200;
constexpr milliseconds kPingTime{300};  // on a long way, fewer are enough

int64_t wall_clock() {
  return std::chrono::duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double in_seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

bool same(const std::string& a, const char* b) {
  unsigned difference = 0;  // without an early end, which would show how much was right
  for (std::size_t i = 0; i < kTokenLength; ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

// Counts what comes, and answers.
void serve_stream(int fd) {
  uint64_t duration = 0;
  if (receive_all(fd, &duration, sizeof duration, Clock::now() + kTokenLimit) != 0) return;
  const milliseconds length(std::min(be64toh(duration), kLongestStream));
  std::vector<char> block(kBlock);
  uint64_t bytes = 0;
  const auto begin = Clock::now();
  auto end = begin + length + seconds(1);  // for the first byte
  while (Clock::now() < end) {
    if (wait_for(fd, POLLIN, end) != 0) break;
    const ssize_t got = ::recv(fd, block.data(), block.size(), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return;
    if (got < 0) continue;
    if (bytes == 0) end = Clock::now() + length;
    bytes += static_cast<uint64_t>(got);
  }
  const auto took = static_cast<uint64_t>(std::max<int64_t>(1, nanoseconds(Clock::now() - begin).count()));
  const std::array<uint64_t, 2> answer = {htobe64(bytes), htobe64(took)};
  send_all(fd, answer.data(), sizeof answer, Clock::now() + kTokenLimit);
}

void serve(int fd, const std::string& token) {
  std::array<char, kTokenLength> presented{};
  send_at_once(fd);
  if (receive_all(fd, presented.data(), presented.size(), Clock::now() + kTokenLimit) != 0) return;
  if (!same(token, presented.data())) return;
  char request = 0;
  while (receive_all(fd, &request, 1, Clock::now() + kIdleLimit) == 0) {
    if (request == kPing) {
      const uint64_t now = htobe64(static_cast<uint64_t>(wall_clock()));
      if (send_all(fd, &now, sizeof now, Clock::now() + kIdleLimit) != 0) return;
    } else {
      if (request == kStream) serve_stream(fd);
      return;
    }
  }
}

int measure_pings(int fd, milliseconds limit, PeerPair& pair) {
  const auto enough = Clock::now() + kPingTime;
  std::vector<double> times;
  double shortest = 0;
  for (int i = 0; i < kWarmup + kPings; ++i) {
    const auto begin = Clock::now();
    const auto deadline = begin + limit;
    const int64_t sent = wall_clock();
    uint64_t theirs = 0;
    if (const int error = send_all(fd, &kPing, 1, deadline)) return error;
    if (const int error = receive_all(fd, &theirs, sizeof theirs, deadline)) return error;
    const double took = in_seconds(Clock::now() - begin);
    if (i < kWarmup) continue;
    times.push_back(took);
    if (times.size() == 1 || took < shortest) {
      shortest = took;
      pair.clock_ahead = static_cast<double>(static_cast<int64_t>(be64toh(theirs)) - sent) * 1e-9 - took / 2;
    }
    if (Clock::now() > enough) break;
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  pair.round_trip = times[times.size() / 2];
  return 0;
}

int measure_bandwidth(int fd, const PeersOptions& options, PeerPair& pair) {
  const auto deadline = Clock::now() + options.connect_limit + options.duration + seconds(1);
  const uint64_t duration = htobe64(static_cast<uint64_t>(options.duration.count()));
  if (const int error = send_all(fd, &kStream, 1, deadline)) return error;
  if (const int error = send_all(fd, &duration, sizeof duration, deadline)) return error;
  const std::vector<char> block(kBlock);
  while (true) {
    if (const int error = wait_for(fd, POLLIN | POLLOUT, deadline)) return error;
    char answer = 0;
    if (::recv(fd, &answer, 1, MSG_PEEK) >= 0) break;  // the answer, or the end of the connection
    const ssize_t sent = ::send(fd, block.data(), block.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return errno;
    if (Clock::now() > deadline) return ETIMEDOUT;
  }
  std::array<uint64_t, 2> answer{};
  if (const int error = receive_all(fd, answer.data(), sizeof answer, deadline)) return error;
  pair.bandwidth = static_cast<double>(be64toh(answer[0])) / (static_cast<double>(be64toh(answer[1])) * 1e-9);
  return 0;
}

}  // namespace

class PeerServer::Service {
 public:
  Service(const std::string& address, int port, std::string token)
      : port_(port), token_(std::move(token)), wake_(::eventfd(0, EFD_CLOEXEC)) {
    token_.resize(kTokenLength);
    const int error = wake_ ? listen_on(address, port_, socket_) : errno;
    if (error != 0) {
      throw Error(ExitCode::failure,
                  "cannot listen on " + address + " port " + std::to_string(port) + ": " + std::strerror(error));
    }
    thread_ = std::thread([this] { accept_all(); });
  }

  ~Service() {
    const uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
    thread_.join();
    for (Connection& one : connections_) ::shutdown(one.socket.get(), SHUT_RDWR);
    for (Connection& one : connections_) one.thread.join();
  }

  int port() const { return port_; }

 private:
  struct Connection {
    UniqueFd socket;
    std::thread thread;
    std::atomic<bool> done{false};
  };

  void accept_all() {
    while (true) {
      std::array<pollfd, 2> entries = {{{socket_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
      if (::poll(entries.data(), entries.size(), -1) < 0 && errno != EINTR) return;
      if (entries[1].revents != 0) return;
      UniqueFd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      connections_.remove_if([](Connection& one) {
        const bool done = one.done;
        if (done) one.thread.join();
        return done;
      });
      if (!socket || connections_.size() >= kMostConnections) continue;
      Connection& made = connections_.emplace_back();
      made.socket = std::move(socket);
      made.thread = std::thread([this, &made] {
        serve(made.socket.get(), token_);
        made.done = true;
      });
    }
  }

  int port_;
  std::string token_;
  UniqueFd wake_;
  UniqueFd socket_;
  std::list<Connection> connections_;  // of thread_, and of the destructor after it
  std::thread thread_;
};

PeerServer::PeerServer(const std::string& address, int port, std::string token)
    : service_(std::make_unique<Service>(address, port, std::move(token))) {}

PeerServer::~PeerServer() = default;

int PeerServer::port() const {
  return service_->port();
}

PeerPair measure(const PeerHost& to, const std::string& token, const PeersOptions& options) {
  PeerPair pair;
  UniqueFd socket;
  pair.connect_errno = connect_to(to.address, to.port, Clock::now() + options.connect_limit, socket);
  if (pair.connect_errno != 0) return pair;
  const int fd = socket.get();
  send_at_once(fd);
  pair.address = local_address(fd);
  int error = send_all(fd, token.data(), token.size(), Clock::now() + options.connect_limit);
  if (error == 0) error = measure_pings(fd, options.connect_limit, pair);
  if (error == 0) error = measure_bandwidth(fd, options, pair);
  if (error != 0) pair.error = std::strerror(error);
  if (const int mtu = path_mtu(fd); mtu > 0) pair.path_mtu = mtu;  // last: the way may have reported a smaller one
  const linger at_once{1, 0};                                      // what is still to be sent is of no use
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  return pair;
}

std::string random_token() {
  std::array<unsigned char, kTokenLength / 2> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw Error(ExitCode::failure, std::string("no random numbers: ") + std::strerror(errno));
  }
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

}  // namespace ddprun::doctor
