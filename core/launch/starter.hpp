// Finds the process that has started the ranks of this host.
#pragma once

#include <sys/types.h>

namespace ddprun::launch {

// The nearest ancestor that was started without the environment variable, which a launcher sets for its ranks: the
// launcher, or its daemon on this host. A script between the launcher and the rank does not count. 0 if the ancestor is
// in another PID namespace. Any thread.
pid_t starter_of_ranks(const char* variable);

}  // namespace ddprun::launch
