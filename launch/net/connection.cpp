#include "launch/net/connection.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "ddprun/error.hpp"
#include "launch/net/address.hpp"
#include "launch/net/protocol.hpp"

namespace ddprun::launch {
namespace {

using Clock = Connection::Clock;
using std::chrono::milliseconds;

constexpr milliseconds kAttempt{1000};  // then connect again: a packet filter may drop packets silently
constexpr milliseconds kPause{20};
constexpr milliseconds kGreeting{6000};

int until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

bool wait_for(int fd, short events, Clock::time_point deadline) {
  pollfd entry{fd, events, 0};
  while (true) {
    const int ready = ::poll(&entry, 1, until(deadline));
    if (ready > 0) return true;
    if (ready == 0 && Clock::now() >= deadline) return false;
  }
}

// Returns 0 if it is connected, otherwise an errno.
int try_connect(const std::string& address, int port, UniqueFd& socket, Clock::time_point deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return EADDRNOTAVAIL;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> entry(found, ::freeaddrinfo);
  socket = UniqueFd(::socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return errno;
  if (::connect(socket.get(), entry->ai_addr, entry->ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_for(socket.get(), POLLOUT, deadline)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

// A host that vanishes sends no more packets. The kernel then ends the connection after three seconds, also if nothing
// is being sent.
void watch_peer(int socket) {
  const auto set = [&](int level, int name, int value) { ::setsockopt(socket, level, name, &value, sizeof value); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, 2);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 3000);
}

void send_all(int socket, std::string_view bytes, const auto& lose) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    if (sent >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) lose(std::strerror(errno));
    wait_for(socket, POLLOUT, Clock::now() + kAttempt);
  }
}

}  // namespace

Connection::Connection(const StoreAddress& address, Clock::time_point deadline)
    : name_("the store at " + address.text()) {
  while (true) {
    connect(address, deadline);
    try {
      greet(address, deadline);
      return;
    } catch (const Error& error) {
      // The server closes connections when too many are made at once; a later attempt succeeds.
      if (error.code() != ExitCode::peer || Clock::now() >= deadline) throw Error(ExitCode::rendezvous, error.what());
    }
    received_.clear();
    std::this_thread::sleep_for(kPause);
  }
}

void Connection::connect(const StoreAddress& address, Clock::time_point deadline) {
  const auto begin = Clock::now();
  const auto addresses = addresses_of(address.host);
  while (true) {
    int error = 0;
    for (const std::string& each : addresses) {
      error = try_connect(each, address.port, socket_, std::min(deadline, Clock::now() + kAttempt));
      if (error != 0) continue;
      watch_peer(socket_.get());
      return;
    }
    if (Clock::now() >= deadline) {
      const auto waited = std::chrono::duration_cast<milliseconds>(Clock::now() - begin).count();
      throw Error(ExitCode::rendezvous, "cannot reach " + name_ + " within " + std::to_string(waited) +
                                            " ms: " + std::strerror(error) +
                                            "; has the process of rank 0 started, and is the port open?");
    }
    std::this_thread::sleep_for(kPause);
  }
}

void Connection::greet(const StoreAddress& address, Clock::time_point deadline) {
  const std::string nonce = make_nonce();
  const auto lost = [this](const std::string& reason) { lose(reason); };
  send_all(socket_.get(), std::string(kHello) + nonce, lost);
  const auto limit = std::min(deadline, Clock::now() + kGreeting);
  Answer answer = Answer::incomplete;
  while (answer == Answer::incomplete) {
    if (!wait_for(socket_.get(), POLLIN, limit)) {
      throw Error(ExitCode::rendezvous,
                  name_ + " does not answer as a store of ddprun: does another program use this port?");
    }
    read_some();
    answer = check_answer(received_, address.secret, nonce);
  }
  if (answer == Answer::not_a_store) {
    throw Error(ExitCode::rendezvous, name_ +
                                          " is not a store of ddprun, or one of another version: does another program "
                                          "use this port?");
  }
  if (answer == Answer::other_secret) {
    throw Error(ExitCode::rendezvous,
                name_ + (address.secret.empty() ? " asks for a secret: set DDPRUN_SECRET to the secret of the job"
                                                : " has another secret: set DDPRUN_SECRET to the "
                                                  "same value on all hosts"));
  }
  const std::string server_nonce = received_.substr(kHello.size(), kNonceBytes);
  received_.erase(0, kAnswerBytes);
  send_all(socket_.get(), proof(address.secret, "client", nonce, server_nonce), lost);
}

void Connection::send(const ByteWriter& payload) {
  const auto lost = [this](const std::string& reason) { lose(reason); };
  if (payload.bytes().size() > kLongestFrame) {
    throw Error(ExitCode::rendezvous, name_ + ": a value of " + std::to_string(payload.bytes().size()) +
                                          " bytes is too long; at most " + std::to_string(kLongestFrame) +
                                          " are possible");
  }
  send_all(socket_.get(), frame_header(payload.bytes().size()) + payload.bytes(), lost);
}

std::string Connection::receive(Clock::time_point deadline) {
  std::string payload;
  while (!poll(payload)) {
    if (wait_for(socket_.get(), POLLIN, deadline)) continue;
    throw Error(ExitCode::rendezvous, name_ + " does not answer");
  }
  return payload;
}

bool Connection::poll(std::string& payload) {
  while (!take_frame(received_, payload)) {
    if (!read_some()) return false;
  }
  return true;
}

bool Connection::read_some() {
  std::array<char, 65536> buffer;
  const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (got > 0) received_.append(buffer.data(), static_cast<std::size_t>(got));
  if (got == 0) lose("it has closed the connection");
  if (got < 0 && errno != EAGAIN && errno != EINTR) lose(std::strerror(errno));
  return got > 0;
}

void Connection::lose(const std::string& reason) const {
  throw Error(ExitCode::peer, "lost " + name_ + ": " + reason);
}

}  // namespace ddprun::launch
