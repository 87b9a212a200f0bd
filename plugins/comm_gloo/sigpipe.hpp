// Gloo writes to sockets without MSG_NOSIGNAL: a peer that has gone would kill the process by SIGPIPE.
#pragma once

#include <csignal>
#include <ctime>

namespace ddprun::gloo_backend {

// Keeps SIGPIPE away from this thread, and from threads started meanwhile, without touching the process's handler.
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
