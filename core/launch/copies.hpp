// Finds out whether an unknown launcher has started several copies of this process.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace ddprun::launch {

// Older copies of this process: the same arguments, folder, user and parent, started at most two seconds before it.
// `proc`: the folder /proc.
std::vector<pid_t> older_copies(const std::string& proc = "/proc");

// Throws Error(rendezvous) if there are any. For a process without a rank that is about to start a job of its own.
void refuse_copies();

}  // namespace ddprun::launch
