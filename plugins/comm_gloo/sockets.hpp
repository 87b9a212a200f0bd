// What Gloo's sockets need: Gloo does not expose them, so this finds them; and no SIGPIPE.
#pragma once

#include <sys/socket.h>

#include <csignal>
#include <ctime>
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

// Gloo writes to sockets without MSG_NOSIGNAL: after the end of a peer, SIGPIPE would kill the process. This blocks it
// in this thread, and in threads that it starts meanwhile. The process's handler stays as it is.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSigpipe() {
    if (sigismember(&before_, SIGPIPE) == 1) return;
    const timespec at_once = {0, 0};
    while (sigtimedwait(&pipe_, nullptr, &at_once) == SIGPIPE) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
};

}  // namespace ddprun::gloo_backend
