// Between the structs of the C table and the types of comm_backend.hpp. Both sides of the ABI boundary use it.
#pragma once

#include "ddprun/comm_backend.hpp"
#include "ddprun/plugin/comm_plugin.h"

namespace ddprun::detail {

constexpr bool same(auto ours, int32_t theirs) {
  return static_cast<int32_t>(ours) == theirs;
}
static_assert(same(DType::float16, DDPRUN_FLOAT16) && same(DType::bfloat16, DDPRUN_BFLOAT16) &&
              same(DType::float32, DDPRUN_FLOAT32) && same(DType::float64, DDPRUN_FLOAT64) &&
              same(DType::int8, DDPRUN_INT8) && same(DType::int16, DDPRUN_INT16) && same(DType::int32, DDPRUN_INT32) &&
              same(DType::int64, DDPRUN_INT64) && same(DType::uint8, DDPRUN_UINT8) &&
              kDTypeCount == DDPRUN_DTYPE_COUNT);
static_assert(same(Op::sum, DDPRUN_SUM) && same(Op::min, DDPRUN_MIN) && same(Op::max, DDPRUN_MAX) &&
              same(Op::product, DDPRUN_PRODUCT) && same(Op::avg, DDPRUN_AVG) && kOpCount == DDPRUN_OP_COUNT);
static_assert(same(Memory::host, DDPRUN_HOST) && same(Memory::cuda, DDPRUN_CUDA));
static_assert(same(CommStatus::ok, DDPRUN_OK) && same(CommStatus::invalid, DDPRUN_INVALID) &&
              same(CommStatus::unsupported, DDPRUN_UNSUPPORTED) && same(CommStatus::timeout, DDPRUN_TIMEOUT) &&
              same(CommStatus::peer_lost, DDPRUN_PEER_LOST) && same(CommStatus::aborted, DDPRUN_ABORTED) &&
              same(CommStatus::mismatch, DDPRUN_MISMATCH) && same(CommStatus::no_memory, DDPRUN_NO_MEMORY) &&
              same(CommStatus::internal, DDPRUN_INTERNAL));

ddprun_collective to_table(const Collective& call);
Collective from_table(const ddprun_collective& call);
ddprun_exchange to_table(const Exchange& call);
Exchange from_table(const ddprun_exchange& call, int ranks);
Capabilities capabilities_of(uint64_t declared, const ddprun_comm_algorithm* algorithms, uint32_t count);

}  // namespace ddprun::detail
