// Access to the process's environment, the only way to give NCCL some settings. A thread that reads the environment
// while another changes it may crash, and ranks may be threads of one process. So all accesses of this backend are
// under a lock, and happen before any of the group's ranks calls NCCL (communicator.cpp).
#pragma once

#include <optional>
#include <string>

namespace ddprun::nccl_backend {

// Thread-safe.
std::optional<std::string> variable(const std::string& name);
void set_variable(const std::string& name, const std::string& value);
void unset_variable(const std::string& name);

}  // namespace ddprun::nccl_backend
