// One collective of a case: run, and held against the reference.
#pragma once

#include <string>

#include "comm/call.hpp"
#include "tools/conformance/arithmetic.hpp"
#include "tools/conformance/suite.hpp"

namespace ddprun::conformance {

using comm::Kind;

struct TestCall {
  Kind kind = Kind::allreduce;
  DType dtype = DType::float32;
  Op op = Op::sum;
  int root = 0;
  std::size_t count = 0;  // elements of one rank, as in ddprun_collective
  bool in_place = false;
};

// "float32 sum count 1024 in place"
std::string describe(const TestCall& what);

// What a checked collective gave: what carried it out, as it reports, and what is wrong, "" for nothing.
struct Checked {
  ExecutionInfo execution;
  std::string fault;
};

// Fills the buffers from `seed`, runs the collective, waits, and checks every element, the guards around the buffers,
// and that send is untouched where it is not also recv. Results that must be equal on all ranks go into *digest
// (optional); of a large one each rank then checks a share of the elements, and all of them the whole. Uses nothing of
// the context but rank, size and deadline, so that several threads may.
Checked run_checked(Context& context, CommBackend& backend, const TestCall& what, uint64_t seed,
                    Context* digest = nullptr);

// Only runs it, with buffers of its own. For cases about how a collective ends.
void run_plain(Context& context, CommBackend& backend, const TestCall& what, milliseconds timeout);

}  // namespace ddprun::conformance
