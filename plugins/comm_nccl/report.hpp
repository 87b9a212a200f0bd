// NCCL's own report of the algorithm that it used. NCCL's interface reports neither algorithm nor transport; only the
// debug lines of NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=TUNING do: "AllReduce: 1024 Bytes -> Algo RING proto LL ...",
// on rank 0.
#pragma once

#include <cstdint>
#include <string>

#include "algorithms.hpp"
#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::nccl_backend {

class Report {
 public:
  // `wanted`: comm.options.verify. Redirects NCCL's debug lines to our own memory, from now on and for the whole
  // process. Construct it before the first NCCL call. Throws CommError(CommStatus::invalid) if there is nothing to
  // compare, or if NCCL's lines already go elsewhere.
  Report(const Host& host, Algorithm asked, bool wanted);

  // Compares the lines since the last call with the requested algorithm. Call it after an allreduce was queued. Throws
  // CommError(CommStatus::internal) if NCCL used another algorithm, or if NCCL reports nothing.
  void require_asked();

 private:
  std::string new_lines();

  const Algorithm asked_;
  const bool speaks_;  // NCCL writes these lines on rank 0 of a group, and none for a single rank
  int file_ = -1;
  int64_t read_ = 0;
};

}  // namespace ddprun::nccl_backend
