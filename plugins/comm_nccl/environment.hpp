// The process's environment, by which alone NCCL takes some orders. A thread that reads it while another changes it may
// crash, and ranks may be threads of one process: all of this backend's reading and writing is in turns, and done
// before any of the group's ranks calls NCCL (communicator.cpp).
#pragma once

#include <optional>
#include <string>

namespace ddprun::nccl_backend {

// Any thread.
std::optional<std::string> variable(const std::string& name);
void set_variable(const std::string& name, const std::string& value);
void unset_variable(const std::string& name);

}  // namespace ddprun::nccl_backend
