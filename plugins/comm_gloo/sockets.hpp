// Gloo keeps its sockets to itself; this finds them.
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

// A duplicate of this process's socket that connects these two addresses. With it a connection can be watched and shut
// down at once, from any thread, whatever Gloo is doing; it stays valid when Gloo has closed its own. Throws CommError.
// (The local address alone would not do: the kernel gives a port again as soon as nobody listens on it.)
Descriptor duplicate_socket(const sockaddr_storage& local, const sockaddr_storage& peer);

}  // namespace ddprun::gloo_backend
