#include "algorithms.hpp"
#include "reduction/topology.hpp"

namespace ddprun::ucx_backend {
namespace {

// Labels: what ranks beyond the power of two send first and receive last, and the rounds in between.
constexpr int kBefore = 0, kAfter = 1, kRounds = 2;

}  // namespace

void tree_allreduce(const Group& group, const Collective& call, Schedule& schedule) {
  const topology::Doubling doubling{group.rank, group.size};
  auto* const recv = static_cast<std::byte*>(call.recv);
  const auto* sum = static_cast<const std::byte*>(call.send);  // this rank's sum so far
  const int partner = doubling.partner();

  schedule.longest = call.count;
  if (group.rank >= doubling.core()) {
    schedule.steps.push_back({.label = kBefore, .to = partner, .out = sum, .out_count = call.count});
    schedule.steps.push_back({.label = kAfter, .from = partner, .in = recv, .in_count = call.count});
    return;
  }
  if (partner >= 0) {
    schedule.steps.push_back(
        {.label = kBefore, .from = partner, .in = recv, .in_count = call.count, .mine = sum, .mine_first = true});
    sum = recv;
  }
  // The lower rank's data comes first on both sides, so that all ranks compute the same bits.
  for (int round = 0; round < doubling.rounds(); ++round) {
    const int peer = doubling.peer(round);
    schedule.steps.push_back({.label = kRounds + round,
                              .to = peer,
                              .out = sum,
                              .out_count = call.count,
                              .from = peer,
                              .in = recv,
                              .in_count = call.count,
                              .mine = sum,
                              .mine_first = group.rank < peer,
                              .completes = round == doubling.rounds() - 1,
                              .exchanges = true});
    sum = recv;
  }
  if (partner >= 0) schedule.steps.push_back({.label = kAfter, .to = partner, .out = recv, .out_count = call.count});
}

void tree_broadcast(const Group& group, const Collective& call, Schedule& schedule) {
  const topology::Tree tree{group.rank, group.size, call.root};
  auto* const data = static_cast<std::byte*>(call.recv);
  schedule.longest = call.count;
  if (tree.parent() >= 0)
    schedule.steps.push_back({.confirmed = true, .from = tree.parent(), .in = data, .in_count = call.count});
  const auto children = tree.children();
  for (int i = children.count; i-- > 0;) {
    schedule.steps.push_back(
        {.to = children.at[static_cast<std::size_t>(i)], .out = data, .out_count = call.count, .confirmed = true});
  }
}

}  // namespace ddprun::ucx_backend
