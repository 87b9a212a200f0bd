#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/transport/unbound_buffer.h>
#include <gloo/types.h>

#include "algorithms.hpp"
#include "ddprun/plugin/topology.hpp"
#include "reduction/reduce.hpp"
#include "segments.hpp"

namespace ddprun::gloo_backend {
namespace {

// Gloo's options have typed pointers, but use only the type's size. They have no const pointers, but do not write to
// inputs.
template <class Options, class T>
void set_buffers(Options& options, const Collective& call, uint64_t send_count, uint64_t recv_count, bool in_place) {
  if (!in_place) options.setInput(static_cast<T*>(const_cast<void*>(call.send)), send_count);
  options.setOutput(static_cast<T*>(call.recv), recv_count);
}

template <class Options>
void set_buffers(Options& options, const Collective& call, uint64_t send_count, uint64_t recv_count, bool in_place) {
  switch (size_of(call.dtype)) {
    case 1: return set_buffers<Options, uint8_t>(options, call, send_count, recv_count, in_place);
    case 2: return set_buffers<Options, uint16_t>(options, call, send_count, recv_count, in_place);
    case 4: return set_buffers<Options, uint32_t>(options, call, send_count, recv_count, in_place);
    default: return set_buffers<Options, uint64_t>(options, call, send_count, recv_count, in_place);
  }
}

}  // namespace

void ring_allreduce(const Run& run, const Collective& call) {
  gloo::AllreduceOptions options(run.context);
  options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
  options.setReduceFunction(reduction::reduce_function(call.dtype, call.op));
  options.setTag(run.tag);
  set_buffers(options, call, call.count, call.count, call.send == call.recv);
  gloo::allreduce(options);
  if (call.op == Op::avg) reduction::divide(call.recv, call.dtype, call.count, run.context->size);
}

void ring_allgather(const Run& run, const Collective& call) {
  const uint64_t block = call.count * size_of(call.dtype);
  const auto* mine = static_cast<const std::byte*>(call.recv) + block * static_cast<uint64_t>(run.context->rank);
  gloo::AllgatherOptions options(run.context);
  options.setTag(run.tag);
  set_buffers(options, call, call.count, call.count * static_cast<uint64_t>(run.context->size), call.send == mine);
  gloo::allgather(options);
}

void ring_reduce_scatter(const Run& run, const Collective& call) {
  const topology::Ring ring{run.context->rank, run.context->size};
  const Segments segments(call.count, call.dtype);
  const uint64_t block = call.count * size_of(call.dtype);
  const uint64_t slot = gloo::Slot::build(kRingReduceScatter, run.tag);
  const auto reduce = reduction::reduce_function(call.dtype, call.op);
  const auto* input = static_cast<const std::byte*>(call.send);
  const auto input_offset = [&](int of_block, int s) {
    return block * static_cast<uint64_t>(of_block) + segments.bytes(s).offset;
  };

  // Two halves for partial sums: one receives a step's block while the other one is sent.
  std::byte* const partial = run.scratch.of_size(2 * block);
  const auto partial_offset = [&](int step, int s) { return (step % 2 == 0 ? 0 : block) + segments.bytes(s).offset; };
  auto first =
      run.context->createUnboundBuffer(const_cast<std::byte*>(input), block * static_cast<uint64_t>(ring.size));
  auto passing = run.context->createUnboundBuffer(partial, 2 * block);
  const auto expect = [&](int step, int s) {
    passing->recv(ring.previous(), slot, partial_offset(step, s), segments.bytes(s).length);
  };

  for (int s = 0; s < segments.number(); ++s) expect(0, s);
  for (int s = 0; s < segments.number(); ++s) {
    first->send(ring.next(), slot, input_offset(ring.reduce_scatter_send(0), s), segments.bytes(s).length);
  }
  const int last = ring.steps() - 1;
  for (int step = 0; step <= last; ++step) {
    for (int s = 0; s < segments.number(); ++s) {
      if (step < last) {
        if (step > 0) passing->waitSend();  // the half that receives next has been sent
        expect(step + 1, s);
      }
      passing->waitRecv();
      std::byte* const arrived = partial + partial_offset(step, s);
      std::byte* const to = step < last ? arrived : static_cast<std::byte*>(call.recv) + segments.bytes(s).offset;
      reduce(to, arrived, input + input_offset(ring.reduce_scatter_receive(step), s), segments.elements(s));
      if (step < last) {
        passing->send(ring.next(), slot, partial_offset(step, s), segments.bytes(s).length);
      } else if (call.op == Op::avg) {
        reduction::divide(to, call.dtype, segments.elements(s), ring.size);
      }
    }
  }
  for (int s = 0; s < segments.number(); ++s) first->waitSend();
  for (int s = 0; last > 0 && s < segments.number(); ++s) passing->waitSend();
}

void dissemination_barrier(const Run& run) {
  gloo::BarrierOptions options(run.context);
  options.setTag(run.tag);
  gloo::barrier(options);
}

}  // namespace ddprun::gloo_backend
