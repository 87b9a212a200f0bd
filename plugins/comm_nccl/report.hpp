// What NCCL itself says it does. It tells neither algorithm nor transport by its interface, only in the lines that
// NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=TUNING writes: "AllReduce: 1024 Bytes -> Algo RING proto LL ...", by rank 0.
#pragma once

#include <cstdint>
#include <string>

#include "algorithms.hpp"
#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::nccl_backend {

class Report {
 public:
  // `wanted`: comm.options.verify. Then NCCL's debug lines go to memory of ours, from now on and for the whole process.
  // To be made before NCCL is called. Throws CommError: CommStatus::invalid where there is nothing to compare, or where
  // NCCL's lines are to go elsewhere.
  Report(const Host& host, Algorithm asked, bool wanted);

  // Compares what NCCL has written since the last call with the algorithm that was asked for. After an allreduce that
  // NCCL has taken. Throws CommError(CommStatus::internal) where another one served it, or NCCL says nothing.
  void require_asked();

 private:
  std::string new_lines();

  const Algorithm asked_;
  const bool speaks_;  // NCCL writes these lines on rank 0 of a group, and none for one rank
  int file_ = -1;
  int64_t read_ = 0;
};

}  // namespace ddprun::nccl_backend
