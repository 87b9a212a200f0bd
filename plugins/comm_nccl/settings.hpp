// comm.options, converted to NCCL's variables: NCCL reads its settings from the environment, once per process.
#pragma once

#include <optional>
#include <string>

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::nccl_backend {

struct Settings {
  bool share_gpu = false;  // several ranks may use one GPU: for tests

  // Reads the options and sets NCCL's variables. Throws CommError(CommStatus::unsupported) if NCCL has already read
  // another value in this process.
  static Settings of(const Host& host);
};

// Access to the process's environment, the only way to give NCCL some settings. A thread that reads the environment
// while another changes it may crash, and ranks may be threads of one process. So all accesses of this backend are
// under a lock, and happen before any of the group's ranks calls NCCL (communicator.cpp). Thread-safe.
std::optional<std::string> variable(const std::string& name);
void set_variable(const std::string& name, const std::string& value);
void unset_variable(const std::string& name);

// Sets one of NCCL's variables for the rest of the process. Throws CommError(CommStatus::unsupported) if an earlier
// communicator has set another value. The message names `why`: "comm.options.debug".
void fix_variable(const std::string& name, const std::string& value, const std::string& why);

// Restricts ranks of one host to its loopback interface, unless the options or the environment name another, so that no
// port is open to the network. All ranks call it before NCCL creates an id.
void stay_on_loopback(const Host& host);

}  // namespace ddprun::nccl_backend
