#include "tools/doctor/socket_io.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace ddprun::doctor {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

// Length 0: not a numeric address.
Address address_of(const std::string& text, int port) {
  Address address;
  auto* four = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* six = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (::inet_pton(AF_INET, text.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(static_cast<uint16_t>(port));
    address.length = sizeof *four;
  } else if (::inet_pton(AF_INET6, text.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(static_cast<uint16_t>(port));
    address.length = sizeof *six;
  }
  return address;
}

UniqueFd open_socket(const Address& address) {
  return UniqueFd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace

int wait_for(int fd, short events, Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd entry{fd, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::clamp<decltype(left)>(left, 0, 60'000)));
    if (ready > 0) return 0;
    if (ready < 0 && errno != EINTR) return errno;
    if (left <= 0) return ETIMEDOUT;
  }
}

int connect_to(const std::string& address, int port, Clock::time_point deadline, UniqueFd& socket) {
  Address to = address_of(address, port);
  if (to.length == 0) return EADDRNOTAVAIL;
  socket = open_socket(to);
  if (!socket) return errno;
  if (::connect(socket.get(), to.get(), to.length) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (const int error = wait_for(socket.get(), POLLOUT, deadline); error != 0) return error;
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

int listen_on(const std::string& address, int& port, UniqueFd& socket) {
  constexpr int kBacklog = 64;
  Address at = address_of(address, port);
  if (at.length == 0) return EADDRNOTAVAIL;
  socket = open_socket(at);
  const int on = 1;
  if (!socket || ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(socket.get(), at.get(), at.length) != 0 || ::listen(socket.get(), kBacklog) != 0 ||
      ::getsockname(socket.get(), at.get(), &at.length) != 0) {
    return errno;
  }
  // Both families have the port at the same place.
  port = ntohs(reinterpret_cast<const sockaddr_in*>(&at.storage)->sin_port);
  return 0;
}

void send_at_once(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int send_all(int fd, const void* data, std::size_t bytes, Clock::time_point deadline) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(fd, at, bytes, MSG_NOSIGNAL);
    if (sent >= 0) {
      at += sent;
      bytes -= static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN) {
      if (const int error = wait_for(fd, POLLOUT, deadline); error != 0) return error;
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

int receive_all(int fd, void* data, std::size_t bytes, Clock::time_point deadline) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = ::recv(fd, at, bytes, 0);
    if (got > 0) {
      at += got;
      bytes -= static_cast<std::size_t>(got);
    } else if (got == 0) {
      return ECONNRESET;
    } else if (errno == EAGAIN) {
      if (const int error = wait_for(fd, POLLIN, deadline); error != 0) return error;
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

std::string local_address(int fd) {
  Address here;
  here.length = sizeof here.storage;
  char text[INET6_ADDRSTRLEN] = "";
  if (::getsockname(fd, here.get(), &here.length) != 0) return "";
  const bool four = here.storage.ss_family == AF_INET;
  const void* address = four ? static_cast<const void*>(&reinterpret_cast<sockaddr_in*>(&here.storage)->sin_addr)
                             : &reinterpret_cast<sockaddr_in6*>(&here.storage)->sin6_addr;
  ::inet_ntop(here.storage.ss_family, address, text, sizeof text);
  return text;
}

int path_mtu(int fd) {
  int mtu = 0;
  socklen_t length = sizeof mtu;
  if (::getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &length) == 0 && mtu > 0) return mtu;
  length = sizeof mtu;
  return ::getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &length) == 0 && mtu > 0 ? mtu : -1;
}

}  // namespace ddprun::doctor
