#include "algorithms.hpp"

namespace ddprun::ucx_backend {

void pairwise_reduce_scatter(const Group& group, const Collective& call, Schedule& schedule) {
  const uint64_t bytes = call.count * size_of(call.dtype);
  auto* const recv = static_cast<std::byte*>(call.recv);
  const auto block = [&](int rank) {
    return static_cast<const std::byte*>(call.send) + static_cast<uint64_t>(rank) * bytes;
  };

  schedule.longest = call.count;
  for (int distance = 1; distance < group.size; ++distance) {
    const int to = (group.rank + distance) % group.size;
    schedule.steps.push_back({.label = distance,
                              .to = to,
                              .out = block(to),
                              .out_count = call.count,
                              .from = (group.rank - distance + group.size) % group.size,
                              .in = recv,
                              .in_count = call.count,
                              .mine = distance == 1 ? block(group.rank) : recv,
                              .completes = distance == group.size - 1});
  }
}

void dissemination_barrier(const Group& group, Schedule& schedule) {
  int round = 0;
  for (int distance = 1; distance < group.size; distance *= 2) {
    schedule.steps.push_back({.label = round++,
                              .to = (group.rank + distance) % group.size,
                              .from = (group.rank - distance + group.size) % group.size});
  }
}

}  // namespace ddprun::ucx_backend
