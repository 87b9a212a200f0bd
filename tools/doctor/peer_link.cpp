#include <endian.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>  // Boost.Asio 1.74 needs it and does not include it

#include <boost/asio/ip/tcp.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <vector>

#include "ddprun/error.hpp"
#include "tools/doctor/peers.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::doctor {
namespace {

using Endpoint = boost::asio::ip::tcp::endpoint;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// A connection: the ticket, then requests. A number is 8 bytes, big-endian.
//   0            -> the clock, in nanoseconds since 1970: a ping
//   milliseconds -> (the client sends bytes until the answer comes) the bytes that came, and in how many nanoseconds.
//                   The server counts for so long from the first byte on, so a slow network has nothing to drain. The
//                   last request of a connection.
constexpr uint64_t kPing = 0;

constexpr seconds kTicketLimit{1};
constexpr seconds kIdleLimit{5};
constexpr milliseconds kSlice{20};           // of a stream, between two looks at the clock
constexpr uint64_t kLongestStream = 60'000;  // milliseconds
constexpr std::size_t kBlock = 1 << 18;
constexpr int kWarmup = 5;
constexpr int kPings = 200;
constexpr milliseconds kPingTime{300};  // on a long way, fewer are enough

int64_t wall_clock() {
  return std::chrono::duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

UniqueFd socket_for(const Endpoint& address) {
  return UniqueFd(::socket(address.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
}

Endpoint own_end(int fd) {
  Endpoint end;
  auto size = static_cast<socklen_t>(end.capacity());
  ::getsockname(fd, end.data(), &size);
  return end;
}

// Each later call on the socket ends after `limit`.
void set_limit(int fd, milliseconds limit) {
  const timeval time{limit.count() / 1000, limit.count() % 1000 * 1000};
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) ::setsockopt(fd, SOL_SOCKET, option, &time, sizeof time);
}

void send_at_once(int fd) {
  const int yes = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

// Of a call that has moved `done` of `bytes`: 0 or an errno.
int error_of(ssize_t done, std::size_t bytes) {
  if (done == static_cast<ssize_t>(bytes)) return 0;
  if (done == 0) return ECONNRESET;  // the peer has closed the connection
  return done > 0 || errno == EAGAIN ? ETIMEDOUT : errno;
}

int send_all(int fd, const void* data, std::size_t bytes) {
  return error_of(::send(fd, data, bytes, MSG_NOSIGNAL), bytes);
}

int receive_all(int fd, void* data, std::size_t bytes) {
  return error_of(::recv(fd, data, bytes, MSG_WAITALL), bytes);
}

// Counts what comes, and answers.
void serve_stream(int fd, milliseconds length) {
  std::vector<char> block(kBlock);
  uint64_t bytes = 0;
  set_limit(fd, kSlice);
  const auto begin = Clock::now();
  auto end = begin + length + seconds(1);  // for the first byte
  while (Clock::now() < end) {
    const ssize_t got = ::recv(fd, block.data(), block.size(), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) return;
    if (got < 0) continue;
    if (bytes == 0) end = Clock::now() + length;
    bytes += static_cast<uint64_t>(got);
  }
  const std::array<uint64_t, 2> answer = {htobe64(bytes),
                                          htobe64(static_cast<uint64_t>(nanoseconds(Clock::now() - begin).count()))};
  set_limit(fd, kIdleLimit);
  send_all(fd, answer.data(), sizeof answer);
}

void serve_requests(int fd) {
  set_limit(fd, kIdleLimit);
  for (uint64_t request = kPing; receive_all(fd, &request, sizeof request) == 0;) {
    if (request != kPing) return serve_stream(fd, milliseconds(std::min(be64toh(request), kLongestStream)));
    const uint64_t now = htobe64(static_cast<uint64_t>(wall_clock()));
    if (send_all(fd, &now, sizeof now) != 0) return;
  }
}

// These return 0 or an errno.
int measure_pings(int fd, PeerPair& pair) {
  const auto enough = Clock::now() + kPingTime;
  std::vector<double> times;
  double shortest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kWarmup + kPings; ++i) {
    const auto begin = Clock::now();
    const int64_t sent = wall_clock();
    uint64_t theirs = 0;
    if (const int error = send_all(fd, &kPing, sizeof kPing)) return error;
    if (const int error = receive_all(fd, &theirs, sizeof theirs)) return error;
    const double took = std::chrono::duration<double>(Clock::now() - begin).count();
    if (i < kWarmup) continue;
    times.push_back(took);
    if (took < shortest) {
      shortest = took;
      pair.clock_ahead_s = static_cast<double>(static_cast<int64_t>(be64toh(theirs)) - sent) * 1e-9 - took / 2;
    }
    if (Clock::now() > enough) break;
  }
  pair.round_trip_s = tools::median(std::move(times));
  return 0;
}

int measure_bandwidth(int fd, const PeersOptions& options, PeerPair& pair) {
  const auto deadline = Clock::now() + options.connect_limit + options.duration + seconds(1);
  const uint64_t duration = htobe64(static_cast<uint64_t>(options.duration.count()));
  if (const int error = send_all(fd, &duration, sizeof duration)) return error;
  set_limit(fd, kSlice);
  const std::vector<char> block(kBlock);
  std::array<uint64_t, 2> answer{};  // comes as a whole
  int error = 0;
  while (::recv(fd, answer.data(), sizeof answer, MSG_PEEK | MSG_DONTWAIT) != sizeof answer) {
    if (error != 0) return error;
    if (::send(fd, block.data(), block.size(), MSG_NOSIGNAL) < 0 && errno != EAGAIN) error = errno;
    if (Clock::now() > deadline) error = ETIMEDOUT;
  }
  pair.bandwidth_bytes_per_s =
      static_cast<double>(be64toh(answer[0])) / (static_cast<double>(be64toh(answer[1])) * 1e-9);
  return 0;
}

}  // namespace

PeerListener::PeerListener(const std::string& address, int port) {
  const Endpoint at(boost::asio::ip::make_address(address), static_cast<uint16_t>(port));
  socket_ = socket_for(at);
  const int yes = 1;
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(socket_.get(), at.data(), static_cast<socklen_t>(at.size())) == 0 &&
      ::listen(socket_.get(), SOMAXCONN) == 0) {
    return;
  }
  throw Error(ExitCode::failure, fmt::format("cannot listen on {} port {}: {}", address, port, std::strerror(errno)));
}

int PeerListener::port() const {
  return own_end(socket_.get()).port();
}

void PeerListener::serve(const std::string& ticket, milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  for (auto left = limit; left.count() > 0; left = std::chrono::floor<milliseconds>(deadline - Clock::now())) {
    set_limit(socket_.get(), left);
    const UniqueFd client(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (client.get() < 0) return;
    send_at_once(client.get());
    set_limit(client.get(), kTicketLimit);
    std::string presented(ticket.size(), '\0');
    const int error = receive_all(client.get(), presented.data(), presented.size());
    if (error == 0 && presented == ticket) return serve_requests(client.get());
  }
}

PeerPair measure(const PeerHost& to, const std::string& ticket, const PeersOptions& options) {
  PeerPair pair;
  const Endpoint at(boost::asio::ip::make_address(to.address), static_cast<uint16_t>(to.port));
  const UniqueFd socket = socket_for(at);
  const int fd = socket.get();
  set_limit(fd, options.connect_limit);
  if (::connect(fd, at.data(), static_cast<socklen_t>(at.size())) != 0) {
    pair.connect_errno = errno == EINPROGRESS ? ETIMEDOUT : errno;
    return pair;
  }
  send_at_once(fd);
  const linger none{1, 0};  // what is still to be sent at the end is of no use
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  pair.address = own_end(fd).address().to_string();
  int error = send_all(fd, ticket.data(), ticket.size());
  if (error == 0) error = measure_pings(fd, pair);
  if (error == 0) error = measure_bandwidth(fd, options, pair);
  if (error != 0) pair.error = std::strerror(error);
  return pair;
}

}  // namespace ddprun::doctor
