// Converts errors of NCCL and CUDA to CommError, with what to try first.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <string>

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::nccl_backend {

// The meaning of a result other than ncclSuccess. `what`: the call, for the message; `detail`: NCCL's last error line,
// or "".
CommError failure_of(const std::string& what, ncclResult_t result, const std::string& detail);
CommError failure_of(const std::string& what, cudaError_t result);

// The error for a `what` that has not finished in time.
CommError timeout_of(const std::string& what, std::chrono::milliseconds limit);

// Throws failure_of() unless the call succeeded.
void check(const std::string& what, ncclResult_t result);
void check(const char* what, cudaError_t result);

}  // namespace ddprun::nccl_backend
