// Finds the process that has started the ranks of this host.
#pragma once

#include <sys/types.h>

namespace ddprun::launch {

// `variable`: an environment variable that the launcher sets for its ranks. Returns the nearest ancestor that was
// started without it: the launcher, or its daemon on this host, but not a script between the launcher and the rank. 0
// if this ancestor is in another PID namespace. Any thread.
pid_t starter_of_ranks(const char* variable);

}  // namespace ddprun::launch
