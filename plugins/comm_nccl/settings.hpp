// comm.options, which become NCCL's variables: NCCL takes its settings from the environment, once per process.
#pragma once

#include <string>

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::nccl_backend {

struct Settings {
  bool share_gpu = false;  // several ranks may use one GPU: for tests
  bool verify = false;     // compare NCCL's own report with the algorithm that was asked for

  // Reads the options and sets NCCL's variables by them. Throws CommError: CommStatus::invalid for an option that is
  // unknown or no value of its kind, CommStatus::unsupported where NCCL has read another value in this process before.
  static Settings of(const Host& host);
};

// Sets one of NCCL's variables for the rest of the process. Throws CommError(CommStatus::unsupported) where an earlier
// communicator has set it otherwise. `why` stands in that line: "comm.options.debug".
void fix_variable(const std::string& name, const std::string& value, const std::string& why);

// Keeps the ranks of one host on its loopback interface, where neither the options nor the environment name another:
// nothing listens to the network. To be called by all ranks, before NCCL makes an id.
void stay_on_loopback(const Host& host);

}  // namespace ddprun::nccl_backend
