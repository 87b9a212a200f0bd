#include <cstring>

#include "algorithms.hpp"
#include "exchange.hpp"
#include "reduction/pairwise.hpp"
#include "reduction/topology.hpp"

namespace ddprun::gloo_backend {
namespace {

constexpr uint64_t divide_up(uint64_t a, uint64_t b) {
  return (a + b - 1) / b;
}

// The ring of Gloo's own allreduce, with its blocks: so the sums have the bits of PyTorch's Gloo backend, whatever the
// number of ranks. It goes the other way round than topology::Ring, and its blocks are made of segments of equal size,
// at least two in a block; the last segments of a vector may be shorter or empty.
class GlooRing {
 public:
  GlooRing(const Run& run, uint64_t count, uint64_t element)
      : mirror_{at(-run.rank, run.size), run.size}, count_(count) {
    constexpr uint64_t kLargestSegment = 1 << 20;
    const auto ranks = static_cast<uint64_t>(run.size);
    const uint64_t segments_of_a_block =
        std::max<uint64_t>(divide_up(divide_up(count, std::max<uint64_t>(kLargestSegment / element, 1)), ranks), 2);
    length_ = segments_of_a_block * divide_up(count, segments_of_a_block * ranks);
  }
  int next() const { return at(-mirror_.next(), mirror_.size); }
  int previous() const { return at(-mirror_.previous(), mirror_.size); }
  int steps() const { return mirror_.steps(); }
  topology::Block reduce_send(int step) const { return block(-mirror_.reduce_scatter_send(step)); }
  topology::Block reduce_receive(int step) const { return block(-mirror_.reduce_scatter_receive(step)); }
  topology::Block gather_send(int step) const { return block(-mirror_.allgather_send(step)); }
  topology::Block gather_receive(int step) const { return block(-mirror_.allgather_receive(step)); }
  // The block that this rank completes.
  topology::Block own() const { return block(-mirror_.rank); }

 private:
  static int at(int rank, int size) { return (rank + size) % size; }
  topology::Block block(int index) const {
    const uint64_t offset = std::min(count_, static_cast<uint64_t>(at(index, mirror_.size)) * length_);
    return {offset, std::min(length_, count_ - offset)};
  }

  const topology::Ring mirror_;
  const uint64_t count_;
  uint64_t length_;
};

}  // namespace

void ring_allreduce(const Run& run, const Collective& call) {
  const uint64_t element = size_of(call.dtype);
  const GlooRing ring(run, call.count, element);
  const Reduction reduction(run, call);
  auto* const data = static_cast<std::byte*>(call.recv);
  const auto* const input = static_cast<const std::byte*>(call.send);
  for (int step = 0; step < ring.steps(); ++step) {
    const auto out = ring.reduce_send(step), in = ring.reduce_receive(step);
    const auto* const from = step == 0 ? input : data;
    exchange(run, {ring.next(), from + out.offset * element, out.length * element}, in.length * element,
             [&](uint64_t at, uint64_t bytes) {
               at += in.offset * element;
               reduction.receive(ring.previous(), data + at, input + at, bytes);
             });
  }
  if (call.op == Op::avg) {
    reduction::divide(data + ring.own().offset * element, call.dtype, ring.own().length, run.divisor);
  }
  for (int step = 0; step < ring.steps(); ++step) {
    const auto out = ring.gather_send(step), in = ring.gather_receive(step);
    exchange(run, {ring.next(), data + out.offset * element, out.length * element}, ring.previous(),
             data + in.offset * element, in.length * element);
  }
}

void ring_allgather(const Run& run, const Collective& call) {
  const topology::Ring ring{run.rank, run.size};
  const uint64_t block = call.count * size_of(call.dtype);
  const auto block_of = [&](int rank) {
    return static_cast<std::byte*>(call.recv) + block * static_cast<uint64_t>(rank);
  };
  if (call.send != block_of(run.rank)) std::memcpy(block_of(run.rank), call.send, block);
  for (int step = 0; step < ring.steps(); ++step) {
    exchange(run, {ring.next(), block_of(ring.allgather_send(step)), block}, ring.previous(),
             block_of(ring.allgather_receive(step)), block);
  }
}

// The input must stay as it is, so the partial sums of a block are in memory of their own. One is enough: a chunk of it
// has been sent before the chunk of the next sum arrives.
void ring_reduce_scatter(const Run& run, const Collective& call) {
  const topology::Ring ring{run.rank, run.size};
  const uint64_t block = call.count * size_of(call.dtype);
  const auto* const input = static_cast<const std::byte*>(call.send);
  const auto input_block = [&](int rank) { return input + block * static_cast<uint64_t>(rank); };
  const Reduction reduction(run, call);
  std::byte* const sum = run.sums.of_size(block);
  for (int step = 0; step < ring.steps(); ++step) {
    const auto* const out = step == 0 ? input_block(ring.reduce_scatter_send(0)) : sum;
    const auto* const mine = input_block(ring.reduce_scatter_receive(step));
    auto* const to = step + 1 < ring.steps() ? sum : static_cast<std::byte*>(call.recv);
    exchange(run, {ring.next(), out, block}, block,
             [&](uint64_t at, uint64_t bytes) { reduction.receive(ring.previous(), to + at, mine + at, bytes); });
  }
  if (call.op == Op::avg) reduction::divide(call.recv, call.dtype, call.count, run.divisor);
}

void pairwise_exchange(const Run& run, const Exchange& call) {
  const auto move = [&](int to, const Block& out, int from, const Block& in) {
    exchange(run, {to, out.data, out.bytes}, from, static_cast<std::byte*>(in.data), in.bytes);
  };
  reduction::exchange_pairwise(run.rank, run.size, call, std::memcpy, move);
}

void dissemination_barrier(const Run& run) {
  for (int distance = 1; distance < run.size; distance *= 2) {
    const std::byte here{1};
    std::byte there;
    run.send((run.rank + distance) % run.size, &here, 1);
    run.receive((run.rank - distance + run.size) % run.size, &there, 1);
  }
}

}  // namespace ddprun::gloo_backend
