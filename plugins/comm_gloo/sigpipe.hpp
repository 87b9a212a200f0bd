// Gloo writes to sockets without MSG_NOSIGNAL: after the end of a peer, SIGPIPE would kill the process.
#pragma once

#include <csignal>
#include <ctime>

namespace ddprun::gloo_backend {

// Blocks SIGPIPE in this thread, and in threads that it starts meanwhile. The process's handler stays as it is.
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
