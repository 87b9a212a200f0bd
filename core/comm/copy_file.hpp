// Copies texts and files between hosts that share no disk.
#pragma once

#include <chrono>
#include <string>

#include "ddprun/comm_backend.hpp"

namespace ddprun::comm {

// Broadcasts `text` of rank `root`. Collective. Throws as CommBackend does.
std::string broadcast_text(CommBackend& backend, int root, std::string text, std::chrono::milliseconds timeout);

// Copies the file `source` of rank `root` to `target` of every other rank whose `target` is not "". Collective. A
// reader of `target` sees the whole file or none. Throws Error(failure): on all ranks if the file cannot be read, and
// on a rank that cannot write it. Otherwise throws as CommBackend does.
void copy_file(CommBackend& backend, int root, const std::string& source, const std::string& target,
               std::chrono::milliseconds timeout);

}  // namespace ddprun::comm
