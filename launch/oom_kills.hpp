// Whether the kernel killed a process at a memory limit: the counters of this process's cgroup, version 2 or 1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ddprun::launch {

// The file that counts the kills at the memory limit of this process's cgroup, from the text of /proc/self/cgroup and
// the mount point of cgroups; "" if there is none.
std::string oom_file(const std::string& proc_self_cgroup, const std::string& mount = "/sys/fs/cgroup");

// The "oom_kill" value of such a file; nothing if it cannot be read.
std::optional<int64_t> oom_kills(const std::string& file);

}  // namespace ddprun::launch
