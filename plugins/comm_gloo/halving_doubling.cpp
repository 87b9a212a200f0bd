#include <gloo/transport/unbound_buffer.h>
#include <gloo/types.h>

#include <cstring>
#include <vector>

#include "algorithms.hpp"
#include "ddprun/plugin/topology.hpp"
#include "reduction/reduce.hpp"
#include "segments.hpp"

namespace ddprun::gloo_backend {
namespace {

using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

// The data that goes to one peer and comes from it, in each direction in the order of the calls.
class Exchange {
 public:
  // Partial sums from the peer go to `arrived`, results to their place in call.recv.
  Exchange(const Run& run, const Collective& call, int peer, std::byte* arrived, uint64_t arrived_bytes)
      : peer_(peer),
        call_(call),
        element_(size_of(call.dtype)),
        halving_(gloo::Slot::build(kHalving, run.tag)),
        doubling_(gloo::Slot::build(kDoubling, run.tag)),
        reduce_(reduction::reduce_function(call.dtype, call.op)),
        data_(run.context->createUnboundBuffer(call.recv, call.count * element_)),
        arrived_(run.context->createUnboundBuffer(arrived, arrived_bytes)) {}

  // Post the receives of a partial sum, or of a result.
  void expect_partial(topology::Block part) {
    for_segments(part.length, [&](uint64_t at, uint64_t count) {
      arrived_->recv(peer_, halving_, at * element_, count * element_);
    });
  }
  // A send to the peer may still use this memory: the peer's result arrives only after that send.
  void expect_result(topology::Block part) {
    for_segments(part.length, [&](uint64_t at, uint64_t count) {
      data_->recv(peer_, doubling_, (part.offset + at) * element_, count * element_);
    });
  }

  void send_partial(topology::Block part) { send(halving_, part); }
  void send_result(topology::Block part) { send(doubling_, part); }
  // Adds the received partial sum to this rank's own.
  void reduce_partial(topology::Block part) {
    for_segments(part.length, [&](uint64_t at, uint64_t count) {
      arrived_->waitRecv();
      std::byte* const mine = static_cast<std::byte*>(call_.recv) + (part.offset + at) * element_;
      reduce_(mine, mine, static_cast<const std::byte*>(arrived_->ptr) + at * element_, count);
    });
  }
  void receive_result(topology::Block part) {
    for_segments(part.length, [&](uint64_t, uint64_t) { data_->waitRecv(); });
  }
  void finish() {
    for (; sent_ > 0; --sent_) data_->waitSend();
  }

 private:
  // Calls body(first element, elements) for each segment.
  template <class Body>
  void for_segments(uint64_t length, Body&& body) {
    const Segments segments(length, call_.dtype);
    for (int s = 0; length > 0 && s < segments.number(); ++s) {
      body(segments.bytes(s).offset / element_, segments.elements(s));
    }
  }
  void send(uint64_t slot, topology::Block part) {
    for_segments(part.length, [&](uint64_t at, uint64_t count) {
      data_->send(peer_, slot, (part.offset + at) * element_, count * element_);
      ++sent_;
    });
  }

  const int peer_;
  const Collective& call_;
  const uint64_t element_;
  const uint64_t halving_, doubling_;
  const reduction::Reduce reduce_;
  Buffer data_, arrived_;
  int sent_ = 0;
};

// One exchange per round, with all receives posted.
std::vector<Exchange> expected_rounds(const Run& run, const topology::Doubling& order, const Collective& call) {
  const uint64_t element = size_of(call.dtype);
  // Half of the vector, then a quarter, and so on; halves are rounded up, so together it may be more than the vector.
  uint64_t elements = 0;
  for (int round = 1; round <= order.rounds(); ++round) elements += order.held(round, call.count).length;
  std::byte* arrived = run.scratch.of_size(elements * element);
  std::vector<Exchange> rounds;
  for (int round = 0; round < order.rounds(); ++round) {
    const auto kept = order.held(round + 1, call.count);
    Exchange& exchange = rounds.emplace_back(run, call, order.peer(round), arrived, kept.length * element);
    exchange.expect_partial(kept);
    exchange.expect_result(order.given(round, call.count));
    arrived += kept.length * element;
  }
  return rounds;
}

void halve_and_double(const Run& run, const topology::Doubling& order, const Collective& call) {
  auto rounds = expected_rounds(run, order, call);
  const auto at = [](int round) { return static_cast<std::size_t>(round); };
  for (int round = 0; round < order.rounds(); ++round) {
    rounds[at(round)].send_partial(order.given(round, call.count));
    rounds[at(round)].reduce_partial(order.held(round + 1, call.count));
  }
  if (call.op == Op::avg) {
    const auto share = order.held(order.rounds(), call.count);
    auto* const first = static_cast<std::byte*>(call.recv) + share.offset * size_of(call.dtype);
    reduction::divide(first, call.dtype, share.length, order.size);
  }
  for (int round = order.rounds() - 1; round >= 0; --round) {
    rounds[at(round)].send_result(order.held(round + 1, call.count));
    rounds[at(round)].receive_result(order.given(round, call.count));
  }
  for (auto& exchange : rounds) exchange.finish();
}

}  // namespace

void halving_doubling_allreduce(const Run& run, const Collective& call) {
  const topology::Doubling order{run.context->rank, run.context->size};
  const topology::Block whole = {0, call.count};
  const uint64_t bytes = call.count * size_of(call.dtype);
  if (call.send != call.recv) std::memcpy(call.recv, call.send, bytes);

  if (order.partner() < 0) return halve_and_double(run, order, call);
  if (order.rank >= order.core()) {
    Exchange pair(run, call, order.partner(), nullptr, 0);
    pair.expect_result(whole);
    pair.send_partial(whole);
    pair.receive_result(whole);
    pair.finish();
  } else {
    Exchange pair(run, call, order.partner(), run.scratch.of_size(bytes), bytes);
    pair.expect_partial(whole);
    pair.reduce_partial(whole);
    halve_and_double(run, order, call);
    pair.send_result(whole);
    pair.finish();
  }
}

}  // namespace ddprun::gloo_backend
