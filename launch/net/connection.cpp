#include "launch/net/connection.hpp"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <utility>  // Boost.Asio 1.74 needs it and does not include it

#include <boost/asio/ip/tcp.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <thread>

#include "ddprun/error.hpp"
#include "launch/net/address.hpp"

namespace ddprun::launch {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAttempt{1000};  // then connect again: a packet filter may drop packets silently
constexpr milliseconds kPause{20};
constexpr milliseconds kGreeting{6000};

}  // namespace

Connection::Connection(const StoreAddress& address, Clock::time_point deadline)
    : name_("the store at " + address.text()) {
  const auto begin = Clock::now();
  const auto addresses = addresses_of(address.host);
  while (true) {
    for (const std::string& each : addresses) {
      try {
        connect(each, address.port, deadline);
        prove(address.secret, std::min(deadline, Clock::now() + kGreeting));
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

// Throws Error(peer).
void Connection::connect(const std::string& address, int port, Clock::time_point deadline) {
  const boost::asio::ip::tcp::endpoint endpoint(boost::asio::ip::make_address(address),
                                                static_cast<unsigned short>(port));
  socket_ = UniqueFd(::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto size = static_cast<socklen_t>(endpoint.size());
  int error = socket_ && ::connect(fd(), endpoint.data(), size) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    socklen_t bytes = sizeof error;
    error = ETIMEDOUT;
    if (wait(POLLOUT, std::min(deadline, Clock::now() + kAttempt))) {
      ::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &bytes);
    }
  }
  if (error != 0) throw Error(ExitCode::peer, std::strerror(error));
  set_options(fd());
}

void Connection::prove(const Secret& secret, Clock::time_point deadline) {
  Greeting greeting(Greeting::Side::client, secret);
  received_.clear();
  while (true) {
    std::string reply;
    const auto result = greeting.step(received_, reply);
    write(reply);
    switch (result) {
      case Greeting::Result::complete: return;
      case Greeting::Result::not_a_store:
        throw Error(ExitCode::rendezvous, name_ + " is not a store of ddprun, or one of another version: " +
                                              "does another program use this port?");
      case Greeting::Result::other_secret:
        throw Error(ExitCode::rendezvous,
                    name_ + (secret.empty() ? " asks for a secret: set DDPRUN_SECRET to the secret of the job"
                                            : " has another secret: set DDPRUN_SECRET to the same value on all hosts"));
      case Greeting::Result::incomplete: break;
    }
    if (read_some() || wait(POLLIN, deadline)) continue;
    throw Error(ExitCode::rendezvous,
                name_ + " does not answer as a store of ddprun: does another program use this port?");
  }
}

// False if the deadline comes first.
bool Connection::wait(short what, Clock::time_point deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
  pollfd entry{fd(), what, 0};
  const int ready = ::poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX)));
  return ready < 0 ? wait(what, deadline) : ready > 0;  // below 0: a signal came
}

bool Connection::poll(std::string& payload) {
  while (!take_frame(received_, payload)) {
    if (!read_some()) return false;
  }
  return true;
}

std::string Connection::receive(Clock::time_point deadline) {
  std::string payload;
  while (!poll(payload)) {
    if (!wait(POLLIN, deadline)) throw Error(ExitCode::rendezvous, name_ + " does not answer");
  }
  return payload;
}

void Connection::send(const ByteWriter& payload) {
  if (payload.bytes().size() > kLongestFrame) {
    throw Error(ExitCode::rendezvous, name_ + ": a value of " + std::to_string(payload.bytes().size()) +
                                          " bytes is too long; at most " + std::to_string(kLongestFrame) +
                                          " are possible");
  }
  write(frame(payload.bytes()));
}

void Connection::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) lose(std::strerror(errno));
    if (sent < 0) wait(POLLOUT, Clock::time_point::max());
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

bool Connection::read_some() {
  std::array<char, 65536> buffer;
  const ssize_t got = ::recv(fd(), buffer.data(), buffer.size(), 0);
  if (got > 0) received_.append(buffer.data(), static_cast<std::size_t>(got));
  if (got == 0) lose("it has closed the connection");
  if (got < 0 && errno != EAGAIN && errno != EINTR) lose(std::strerror(errno));
  return got > 0;
}

void Connection::lose(const std::string& reason) const {
  throw Error(ExitCode::peer, "lost " + name_ + ": " + reason);
}

void set_options(int socket) {
  const auto set = [socket](int level, int name, int value) {
    ::setsockopt(socket, level, name, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  // A host that vanishes sends no more packets. With the probes the kernel notices it also if nothing is being sent.
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 3000);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, 2);
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
}

}  // namespace ddprun::launch
