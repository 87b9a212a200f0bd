#include "algorithms.hpp"
#include "reduction/topology.hpp"

namespace ddprun::ucx_backend {

void ring_allreduce(const Group& group, const Collective& call, Schedule& schedule) {
  const topology::Ring ring{group.rank, group.size};
  const uint64_t element = size_of(call.dtype);
  const auto* const send = static_cast<const std::byte*>(call.send);
  auto* const recv = static_cast<std::byte*>(call.recv);
  const auto block = [&](int index) { return topology::block(call.count, group.size, index); };

  schedule.longest = block(0).length;
  for (int i = 0; i < ring.steps(); ++i) {
    const auto out = block(ring.reduce_scatter_send(i)), in = block(ring.reduce_scatter_receive(i));
    schedule.steps.push_back({.label = i,
                              .to = ring.next(),
                              .out = (i == 0 ? send : recv) + out.offset * element,
                              .out_count = out.length,
                              .from = ring.previous(),
                              .in = recv + in.offset * element,
                              .in_count = in.length,
                              .mine = send + in.offset * element,
                              .at_once = true,
                              .completes = i == ring.steps() - 1});
  }
  for (int i = 0; i < ring.steps(); ++i) {
    const auto out = block(ring.allgather_send(i)), in = block(ring.allgather_receive(i));
    schedule.steps.push_back({.label = ring.steps() + i,
                              .to = ring.next(),
                              .out = recv + out.offset * element,
                              .out_count = out.length,
                              .from = ring.previous(),
                              .in = recv + in.offset * element,
                              .in_count = in.length});
  }
}

void ring_allgather(const Group& group, const Collective& call, Schedule& schedule) {
  const topology::Ring ring{group.rank, group.size};
  const uint64_t bytes = call.count * size_of(call.dtype);
  const auto block = [&](int index) {
    return static_cast<std::byte*>(call.recv) + static_cast<uint64_t>(index) * bytes;
  };

  schedule.longest = call.count;
  for (int i = 0; i < ring.steps(); ++i) {
    schedule.steps.push_back({.label = i,
                              .to = ring.next(),
                              .out = block(ring.allgather_send(i)),
                              .out_count = call.count,
                              .from = ring.previous(),
                              .in = block(ring.allgather_receive(i)),
                              .in_count = call.count});
  }
}

}  // namespace ddprun::ucx_backend
