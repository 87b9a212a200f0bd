#include <bit>

#include "algorithms.hpp"
#include "reduction/topology.hpp"

namespace ddprun::ucx_backend {
namespace {

// Labels: what ranks beyond the power of two send first and receive last, and the rounds in between.
constexpr int kBefore = 0, kAfter = 1, kRounds = 2;

// Between core() ranks: add_rounds(doubling, sum so far). The others give their vector to a partner, and get the
// result.
template <class AddRounds>
void with_partners(const Group& group, const Collective& call, Schedule& schedule, AddRounds&& add_rounds) {
  const topology::Doubling doubling{group.rank, group.size};
  auto* const recv = static_cast<std::byte*>(call.recv);
  const auto* sum = static_cast<const std::byte*>(call.send);
  const int partner = doubling.partner();
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
  add_rounds(doubling, sum);
  if (partner >= 0) schedule.steps.push_back({.label = kAfter, .to = partner, .out = recv, .out_count = call.count});
}

// The sum in a round. The lower rank's data comes first on both sides, so that all ranks compute the same bits.
Step round_of(const topology::Doubling& doubling, int round, const std::byte* sum, const Collective& call) {
  const int peer = doubling.peer(round);
  return {.label = kRounds + round,
          .to = peer,
          .out = sum,
          .out_count = call.count,
          .from = peer,
          .in = static_cast<std::byte*>(call.recv),
          .in_count = call.count,
          .mine = sum,
          .mine_first = doubling.rank < peer,
          .completes = round == doubling.rounds() - 1};
}

}  // namespace

void tree_allreduce(const Group& group, const Collective& call, Schedule& schedule) {
  schedule.longest = call.count;
  with_partners(group, call, schedule, [&](const topology::Doubling& doubling, const std::byte* sum) {
    for (int round = 0; round < doubling.rounds(); ++round) {
      Step& step = schedule.steps.emplace_back(round_of(doubling, round, sum, call));
      step.exchanges = true;
      sum = step.in;
    }
  });
}

void halving_doubling_allreduce(const Group& group, const Collective& call, Schedule& schedule) {
  // A message has at most one half of a segment, but for partners.
  schedule.longest = std::has_single_bit(static_cast<unsigned>(group.size)) ? (call.count + 1) / 2 : call.count;
  with_partners(group, call, schedule, [&](const topology::Doubling& doubling, const std::byte* sum) {
    for (int round = 0; round < doubling.rounds(); ++round) {
      Step& step = schedule.steps.emplace_back(round_of(doubling, round, sum, call));
      step.out_share = doubling.given(round);
      step.in_share = doubling.kept(round);
      sum = step.in;
    }
    for (int round = doubling.rounds() - 1; round >= 0; --round) {
      Step& step = schedule.steps.emplace_back(round_of(doubling, round, sum, call));
      step.label += doubling.rounds();
      step.out_share = doubling.kept(round);
      step.in_share = doubling.given(round);
      step.mine = nullptr;
    }
  });
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
