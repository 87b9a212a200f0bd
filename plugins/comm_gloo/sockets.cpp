#include "sockets.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::gloo_backend {
namespace {

bool same_address(const sockaddr_storage& a, const sockaddr_storage& b) {
  if (a.ss_family != b.ss_family) return false;
  if (a.ss_family == AF_INET) {
    const auto &x = reinterpret_cast<const sockaddr_in&>(a), &y = reinterpret_cast<const sockaddr_in&>(b);
    return x.sin_port == y.sin_port && x.sin_addr.s_addr == y.sin_addr.s_addr;
  }
  const auto &x = reinterpret_cast<const sockaddr_in6&>(a), &y = reinterpret_cast<const sockaddr_in6&>(b);
  return x.sin6_port == y.sin6_port && std::memcmp(&x.sin6_addr, &y.sin6_addr, sizeof x.sin6_addr) == 0;
}

// get is getsockname or getpeername.
template <class Get>
bool has_address(Get get, int descriptor, const sockaddr_storage& expected) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  return get(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0 && same_address(address, expected);
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

Descriptor duplicate_socket(const sockaddr_storage& local, const sockaddr_storage& peer) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int descriptor = std::atoi(entry.path().filename().c_str());
    if (!has_address(getsockname, descriptor, local) || !has_address(getpeername, descriptor, peer)) continue;
    Descriptor duplicate(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    if (duplicate.get() < 0) throw CommError(CommStatus::internal, "no file descriptor left for a connection");
    return duplicate;
  }
  return Descriptor();
}

}  // namespace ddprun::gloo_backend
