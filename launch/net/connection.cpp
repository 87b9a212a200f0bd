#include "launch/net/connection.hpp"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <cerrno>
#include <climits>
#include <cstring>
#include <thread>

#include "ddprun/error.hpp"
#include "launch/net/address.hpp"

namespace ddprun::launch {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr milliseconds kAttempt{1000};  // then connect again: a packet filter may drop packets silently
constexpr milliseconds kPause{20};
constexpr milliseconds kGreeting{6000};

}  // namespace

void close_in_children(int socket) {
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
}

Connection::Connection(const StoreAddress& address, Clock::time_point deadline)
    : context_(std::make_unique<asio::io_context>(1)),
      socket_(*context_),
      secret_(address.secret),
      name_("the store at " + address.text()) {
  const auto begin = Clock::now();
  const auto addresses = addresses_of(address.host);
  while (true) {
    for (const std::string& each : addresses) {
      try {
        connect(each, address.port, deadline);
        prove(std::min(deadline, Clock::now() + kGreeting));
        return;
      } catch (const Error& error) {
        // The server may start later, and it closes connections when too many are made at once.
        if (error.code() != ExitCode::peer) throw;
        if (Clock::now() < deadline) continue;
        const auto waited = std::chrono::duration_cast<milliseconds>(Clock::now() - begin).count();
        throw Error(ExitCode::rendezvous, "cannot reach " + name_ + " within " + std::to_string(waited) +
                                              " ms: " + error.what() +
                                              "; has the process of rank 0 started, and is the port open?");
      }
    }
    std::this_thread::sleep_for(kPause);
  }
}

Connection::Connection(Socket socket, const Secret& secret)
    : socket_(std::move(socket)),
      secret_(secret),
      name_("a client"),
      greeting_(std::in_place, Greeting::Side::server, secret) {
  set_options();
}

// Throws Error(peer).
void Connection::connect(const std::string& address, int port, Clock::time_point deadline) {
  const tcp::endpoint endpoint(asio::ip::make_address(address), static_cast<unsigned short>(port));
  // asio would set the flags later: a process that another thread forks meanwhile would inherit the socket.
  const int socket = ::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) throw Error(ExitCode::peer, std::strerror(errno));
  socket_ = Socket(*context_, endpoint.protocol(), socket);
  int error = ::connect(socket, endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    socklen_t size = sizeof error;
    error = ETIMEDOUT;
    if (wait(POLLOUT, std::min(deadline, Clock::now() + kAttempt))) {
      ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  if (error != 0) throw Error(ExitCode::peer, std::strerror(error));
  set_options();
}

// Exchanges the proofs of the secret.
void Connection::prove(Clock::time_point deadline) {
  greeting_.emplace(Greeting::Side::client, secret_);
  received_.clear();
  queue_.clear();
  written_ = 0;
  while (!greet()) {
    if (read_some() || wait(POLLIN, deadline)) continue;
    throw Error(ExitCode::rendezvous,
                name_ + " does not answer as a store of ddprun: does another program use this port?");
  }
}

// Of a client. False if the deadline comes first.
bool Connection::wait(short what, Clock::time_point deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
  pollfd entry{socket_.native_handle(), what, 0};
  return ::poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX))) != 0;
}

void Connection::set_options() {
  const auto set = [this](int level, int name, int value) {
    ::setsockopt(socket_.native_handle(), level, name, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  // A host that vanishes sends no more packets. With the probes the kernel notices it also if nothing is being sent.
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 3000);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, 2);
  close_in_children(socket_.native_handle());
  error_code ignored;
  socket_.non_blocking(true, ignored);
}

// Whether the other side has proved the secret.
bool Connection::greet() {
  if (!greeting_) return true;
  std::string reply;
  const auto result = greeting_->step(received_, reply);
  if (!reply.empty()) queue(std::make_shared<const std::string>(std::move(reply)));
  write_some();  // the kernel takes so few bytes at once
  switch (result) {
    case Greeting::Result::incomplete: return false;
    case Greeting::Result::complete: greeting_.reset(); return true;
    case Greeting::Result::not_a_store:
      throw Error(ExitCode::rendezvous,
                  name_ + " is not a store of ddprun, or one of another version: does another program use this port?");
    case Greeting::Result::other_secret: break;
  }
  throw Error(ExitCode::rendezvous,
              name_ + (secret_.empty() ? " asks for a secret: set DDPRUN_SECRET to the secret of the job"
                                       : " has another secret: set DDPRUN_SECRET to the same value on all hosts"));
}

bool Connection::poll(std::string& payload) {
  const uint64_t most = context_ ? UINT64_MAX : kLongestFrame;
  while (!greet() || !take_frame(received_, payload, most)) {
    if (!read_some()) return false;
  }
  return true;
}

void Connection::send(const ByteWriter& payload) {
  if (payload.bytes().size() > kLongestFrame) {
    throw Error(ExitCode::rendezvous, name_ + ": a value of " + std::to_string(payload.bytes().size()) +
                                          " bytes is too long; at most " + std::to_string(kLongestFrame) +
                                          " are possible");
  }
  queue(std::make_shared<const std::string>(frame(payload.bytes())));
  while (!write_some()) wait(POLLOUT, Clock::time_point::max());
}

std::string Connection::receive(Clock::time_point deadline) {
  std::string payload;
  while (!poll(payload)) {
    if (!wait(POLLIN, deadline)) throw Error(ExitCode::rendezvous, name_ + " does not answer");
  }
  return payload;
}

bool Connection::write_some() {
  while (!queue_.empty()) {
    error_code error;
    written_ += socket_.write_some(asio::buffer(*queue_.front()) + written_, error);
    if (error == asio::error::would_block) return false;
    if (error) lose(error);
    if (written_ < queue_.front()->size()) continue;
    queue_.pop_front();
    written_ = 0;
  }
  return true;
}

bool Connection::read_some() {
  std::array<char, 65536> buffer{};
  error_code error;
  received_.append(buffer.data(), socket_.read_some(asio::buffer(buffer), error));
  if (error && error != asio::error::would_block) lose(error);
  return !error;
}

bool Connection::is_idle() const {
  error_code ignored;
  return queue_.empty() && socket_.available(ignored) == 0;
}

void Connection::lose(const error_code& error) const {
  const std::string reason = error == asio::error::eof ? "it has closed the connection" : error.message();
  throw Error(ExitCode::peer, "lost " + name_ + ": " + reason);
}

}  // namespace ddprun::launch
