// NCCL's arithmetic on host memory: rank by rank, half precision in float32 and rounded once.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <string>
#include <vector>

namespace ddprun::fake_nccl {

// Bytes of an element; 0 for an unsupported type.
std::size_t size_of(ncclDataType_t type);

// The element-wise result over parts of `count` elements each.
std::string reduced(const std::vector<std::string>& parts, std::size_t count, ncclDataType_t type, ncclRedOp_t op);

}  // namespace ddprun::fake_nccl
