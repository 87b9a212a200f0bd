// Finds out whether an unknown launcher has started several copies of this process.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace ddprun::launch {

// Older copies of this process: the same arguments, folder, user and parent, started at most two seconds before it.
// `proc`: the folder /proc.
std::vector<pid_t> older_copies(const std::string& proc = "/proc");

// Throws Error(rendezvous) if there are any. For a process that found no rank and is about to start a job.
void refuse_copies();

}  // namespace ddprun::launch
