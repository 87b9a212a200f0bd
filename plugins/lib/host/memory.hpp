// How much memory this process can still get.
#pragma once

#include <cstdint>
#include <string>

namespace ddprun::host {

// The least of what the system can give and what the memory cgroups of this process leave (version 1 or 2), in bytes.
// Page cache that the kernel can drop counts as free. `root`: the folder that has proc/ and sys/. Throws CommError if
// /proc/meminfo cannot be read.
uint64_t available_memory(const std::string& root = "");

}  // namespace ddprun::host
