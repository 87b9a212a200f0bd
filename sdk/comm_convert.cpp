#include "ddprun/plugin/detail/comm_convert.hpp"

namespace ddprun::detail {

ddprun_collective to_table(const Collective& call) {
  return {.struct_size = sizeof(ddprun_collective),
          .dtype = static_cast<int32_t>(call.dtype),
          .op = static_cast<int32_t>(call.op),
          .root = call.root,
          .memory = static_cast<int32_t>(call.memory),
          .canonical_order = call.canonical_order ? 1 : 0,
          .send = call.send,
          .recv = call.recv,
          .count = call.count,
          .stream = call.stream};
}

Collective from_table(const ddprun_collective& call) {
  return {.send = call.send,
          .recv = call.recv,
          .count = call.count,
          .dtype = static_cast<DType>(call.dtype),
          .op = static_cast<Op>(call.op),
          .root = call.root,
          .memory = static_cast<Memory>(call.memory),
          .stream = call.stream,
          .canonical_order = call.canonical_order != 0};
}

ddprun_exchange to_table(const Exchange& call) {
  return {.struct_size = sizeof(ddprun_exchange),
          .memory = static_cast<int32_t>(call.memory),
          .send = call.send.data(),
          .recv = call.recv.data(),
          .stream = call.stream};
}

Exchange from_table(const ddprun_exchange& call, int ranks) {
  return {.send = {call.send, call.send + ranks},
          .recv = {call.recv, call.recv + ranks},
          .memory = static_cast<Memory>(call.memory),
          .stream = call.stream};
}

Capabilities capabilities_of(uint64_t declared, const ddprun_comm_algorithm* algorithms, uint32_t count) {
  const auto has = [&](uint64_t bit) { return (declared & bit) != 0; };
  Capabilities capabilities{.host = has(DDPRUN_CAP_HOST),
                            .cuda = has(DDPRUN_CAP_CUDA),
                            .blocking = has(DDPRUN_CAP_BLOCKING),
                            .stream_ordered = has(DDPRUN_CAP_STREAM_ORDERED),
                            .alloc = has(DDPRUN_CAP_ALLOC),
                            .reduce_scatter = has(DDPRUN_CAP_REDUCE_SCATTER),
                            .exchange = has(DDPRUN_CAP_EXCHANGE),
                            .alloc_memory = has(DDPRUN_CAP_HOST) ? Memory::host : Memory::cuda,
                            .algorithms = {}};
  // Steps by each entry's own size: a newer plugin's entries may be longer than ours.
  const auto* at = reinterpret_cast<const std::byte*>(algorithms);
  for (uint32_t i = 0; i < count; ++i) {
    const auto& algorithm = *reinterpret_cast<const ddprun_comm_algorithm*>(at);
    capabilities.algorithms.push_back(
        {algorithm.name, algorithm.dtypes, algorithm.ops, algorithm.memory != 0 ? algorithm.memory : ~0U,
         (algorithm.memory >> DDPRUN_FROM_ALLOC & 1) != 0,
         algorithm.struct_size > offsetof(ddprun_comm_algorithm, canonical_order) ? algorithm.canonical_order : 0});
    at += algorithm.struct_size;
  }
  return capabilities;
}

}  // namespace ddprun::detail
