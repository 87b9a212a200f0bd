#include <endian.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>  // Boost.Asio 1.74 needs it and does not include it

#include <boost/asio/ip/tcp.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "ddprun/error.hpp"
#include "tools/doctor/peers.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::doctor {
namespace {

using Endpoint = boost::asio::ip::tcp::endpoint;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A connection: the ticket, then requests: a number of 8 bytes, big-endian, and so many bytes. The answer is the
// number.
constexpr seconds kTicketLimit{1};
constexpr seconds kIdleLimit{5};
constexpr std::size_t kLarge = 1 << 18;  // many packets of full size
constexpr int kWarmup = 5;
constexpr int kPings = 200;
constexpr milliseconds kPingTime{300};  // on a long way, fewer are enough

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
  if (bytes == 0) return 0;  // recv() would wait for data
  return error_of(::recv(fd, data, bytes, MSG_WAITALL), bytes);
}

void serve_requests(int fd) {
  set_limit(fd, kIdleLimit);
  std::vector<char> block(kLarge);
  for (uint64_t bytes = 0; receive_all(fd, &bytes, sizeof bytes) == 0;) {
    if (receive_all(fd, block.data(), std::min<std::size_t>(be64toh(bytes), kLarge)) != 0) return;
    if (send_all(fd, &bytes, sizeof bytes) != 0) return;
  }
}

// These return 0 or an errno.
int make_round_trip(int fd, const std::vector<char>& block) {
  uint64_t bytes = htobe64(block.size());
  if (const int error = send_all(fd, &bytes, sizeof bytes)) return error;
  if (const int error = send_all(fd, block.data(), block.size())) return error;
  return receive_all(fd, &bytes, sizeof bytes);
}

int measure_round_trips(int fd, PeerPair& pair) {
  const auto enough = Clock::now() + kPingTime;
  std::vector<double> times;
  for (int i = 0; i < kWarmup + kPings && Clock::now() < enough; ++i) {
    const auto begin = Clock::now();
    if (const int error = make_round_trip(fd, {})) return error;
    if (i >= kWarmup || times.empty()) times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  pair.round_trip_s = tools::median(std::move(times));
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
  if (error == 0) error = measure_round_trips(fd, pair);
  if (error == 0) pair.loses_large = make_round_trip(fd, std::vector<char>(kLarge)) != 0;
  if (error != 0) pair.error = std::strerror(error);
  return pair;
}

}  // namespace ddprun::doctor
