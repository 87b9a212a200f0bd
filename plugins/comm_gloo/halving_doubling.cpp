#include <cstring>

#include "algorithms.hpp"
#include "exchange.hpp"
#include "reduction/topology.hpp"

namespace ddprun::gloo_backend {
namespace {

struct Doubling : topology::Doubling {
  Doubling(const Run& run, const Collective& call)
      : topology::Doubling{run.rank, run.size},
        element(size_of(call.dtype)),
        data(static_cast<std::byte*>(call.recv)),
        bytes(call.count * element) {}

  std::byte* at(topology::Block part) const { return data + part.offset * element; }
  uint64_t bytes_of(topology::Block part) const { return part.length * element; }

  const uint64_t element;
  std::byte* const data;
  const uint64_t bytes;
};

void halve_and_double(const Run& run, const Doubling& order, const Collective& call) {
  const Reduction reduction(run, call);
  for (int round = 0; round < order.rounds(); ++round) {
    const int peer = order.peer(round);
    const auto kept = order.kept(round).of(call.count), given = order.given(round).of(call.count);
    exchange(run, {peer, order.at(given), order.bytes_of(given)}, order.bytes_of(kept),
             [&](uint64_t at, uint64_t bytes) {
               std::byte* const mine = order.at(kept) + at;
               reduction.receive(peer, mine, mine, bytes);
             });
  }
  if (call.op == Op::avg) {
    const auto share = order.kept(order.rounds() - 1).of(call.count);
    reduction::divide(order.at(share), call.dtype, share.length, run.divisor);
  }
  for (int round = order.rounds() - 1; round >= 0; --round) {
    const int peer = order.peer(round);
    const auto kept = order.kept(round).of(call.count), given = order.given(round).of(call.count);
    exchange(run, {peer, order.at(kept), order.bytes_of(kept)}, peer, order.at(given), order.bytes_of(given));
  }
}

// Each pair of ranks computes the same sums, and in the same order, so the bits are equal.
void double_only(const Run& run, const Doubling& order, const Collective& call) {
  const Reduction reduction(run, call);
  for (int round = 0; round < order.rounds(); ++round) {
    const int peer = order.peer(round);
    exchange(run, {peer, order.data, order.bytes}, order.bytes,
             [&](uint64_t at, uint64_t bytes) { reduction.receive(peer, order.data + at, order.data + at, bytes); });
  }
  if (call.op == Op::avg) reduction::divide(call.recv, call.dtype, call.count, run.divisor);
}

// Ranks beyond the largest power of two give their vector to a partner first, and get the result last.
template <class Among>
void with_partners(const Run& run, const Collective& call, Among&& among_the_core) {
  const Doubling order(run, call);
  if (call.send != call.recv) std::memcpy(call.recv, call.send, order.bytes);
  const int partner = order.partner();
  const auto send = [&] {
    for_chunks(run, order.bytes, [&](uint64_t at, uint64_t bytes) { run.send(partner, order.data + at, bytes); });
  };
  if (order.rank >= order.core()) {
    send();
    for_chunks(run, order.bytes, [&](uint64_t at, uint64_t bytes) { run.receive(partner, order.data + at, bytes); });
    return;
  }
  if (partner >= 0) {
    const Reduction reduction(run, call);
    for_chunks(run, order.bytes, [&](uint64_t at, uint64_t bytes) {
      reduction.receive(partner, order.data + at, order.data + at, bytes);
    });
  }
  among_the_core(order);
  if (partner >= 0) send();
}

}  // namespace

void halving_doubling_allreduce(const Run& run, const Collective& call) {
  with_partners(run, call, [&](const Doubling& order) { halve_and_double(run, order, call); });
}

void doubling_allreduce(const Run& run, const Collective& call) {
  with_partners(run, call, [&](const Doubling& order) { double_only(run, order, call); });
}

}  // namespace ddprun::gloo_backend
