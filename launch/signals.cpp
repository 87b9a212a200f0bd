#include "launch/signals.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "ddprun/error.hpp"

namespace ddprun::launch {

IgnoredSigpipe::IgnoredSigpipe() {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &before_);
}

IgnoredSigpipe::~IgnoredSigpipe() {
  ::sigaction(SIGPIPE, &before_, nullptr);
}

Signals::Signals(std::initializer_list<int> more) {
  sigset_t wanted;
  ::sigemptyset(&wanted);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD}) ::sigaddset(&wanted, signal);
  for (const int signal : more) ::sigaddset(&wanted, signal);
  fd_ = UniqueFd(::signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd_) throw Error(ExitCode::failure, std::string("the launcher cannot watch signals: ") + std::strerror(errno));
  ::pthread_sigmask(SIG_BLOCK, &wanted, &mask_before_);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGUSR2, &ignore, &usr2_before_);  // a blocked signal comes nevertheless
  // If our parent ignores SIGCHLD, we inherit that, and the kernel would reap the ranks itself.
  struct sigaction heed {};
  heed.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &heed, &child_before_);
}

Signals::~Signals() {
  ::sigaction(SIGUSR2, &usr2_before_, nullptr);
  ::sigaction(SIGCHLD, &child_before_, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

std::optional<int> Signals::next() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace ddprun::launch
