// The launcher's signals as a file descriptor for its poll loop.
#pragma once

#include <csignal>
#include <initializer_list>
#include <optional>

#include "base/unique_fd.hpp"

namespace ddprun::launch {

// While it lives, a write to a pipe without a reader is EPIPE, not SIGPIPE, which would end this process.
class IgnoredSigpipe {
 public:
  IgnoredSigpipe();
  ~IgnoredSigpipe();
  IgnoredSigpipe(const IgnoredSigpipe&) = delete;
  IgnoredSigpipe& operator=(const IgnoredSigpipe&) = delete;

 private:
  struct sigaction before_ {};
};

// While it lives, SIGINT, SIGTERM, SIGUSR1, SIGCHLD and those of `more` are blocked in this thread and read here, and
// SIGPIPE is ignored. SIGUSR2 is ignored in programs that this one starts. Threads that already run still receive them,
// so construct it while there is only one thread.
class Signals {
 public:
  explicit Signals(std::initializer_list<int> more = {});  // throws Error(failure)
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_.get(); }
  std::optional<int> next();  // the next received signal; never waits

 private:
  const IgnoredSigpipe ignored_;
  sigset_t mask_before_{};
  struct sigaction usr2_before_ {};
  struct sigaction child_before_ {};
  UniqueFd fd_;
};

}  // namespace ddprun::launch
