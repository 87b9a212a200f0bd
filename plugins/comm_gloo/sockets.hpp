// Gloo does not expose its sockets; this finds them.
#pragma once

#include <sys/socket.h>

#include <utility>

namespace ddprun::gloo_backend {

// Owns a file descriptor; -1 is none.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();
  int get() const noexcept { return number_; }

 private:
  int number_;
};

// Duplicates this process's socket that connects these two addresses. Any thread can watch the connection through the
// duplicate and shut it down at once. The duplicate stays valid when Gloo closes its own socket. Gives none if there is
// no such socket, and throws CommError if it cannot be duplicated. (The local address alone is not enough: the kernel
// reuses a port as soon as nobody listens on it.)
Descriptor duplicate_socket(const sockaddr_storage& local, const sockaddr_storage& peer);

}  // namespace ddprun::gloo_backend
