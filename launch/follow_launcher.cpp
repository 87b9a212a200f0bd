#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "launch/supervisor.hpp"

namespace ddprun::launch {

void follow_launcher() {
  const char* launcher = std::getenv("DDPRUN_LAUNCHER_PID");
  if (launcher == nullptr) return;
  if (::getpgrp() != ::getpid()) return;  // the rank is a script that has started this process
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // If the launcher died before the prctl call, no signal comes, but this process already has another parent.
  if (std::to_string(::getppid()) != launcher) ::_exit(static_cast<int>(ExitCode::peer));
}

}  // namespace ddprun::launch
