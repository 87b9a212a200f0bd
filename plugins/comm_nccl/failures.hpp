// NCCL's and CUDA's results as failures of the contract, with what to try first.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <string>

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::nccl_backend {

// What a result other than ncclSuccess means. `what`: the call, for the line; `detail`: NCCL's own last words, or "".
CommError failure_of(const std::string& what, ncclResult_t result, const std::string& detail);
CommError failure_of(const std::string& what, cudaError_t result);

// `what` has not ended in time.
CommError timeout_of(const std::string& what, std::chrono::milliseconds limit);

// Throws failure_of() unless the call went well.
void check(const std::string& what, ncclResult_t result);
void check(const char* what, cudaError_t result);

}  // namespace ddprun::nccl_backend
