// One collective of a case: runs it and compares the result with the reference.
#pragma once

#include <string>

#include "comm/call.hpp"
#include "testing/arithmetic.hpp"
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
  milliseconds overwrite_after{0};  // not 0: run_checked() overwrites the buffers after wait, and looks again later
};

// "float32 sum count 1024 in place"
std::string describe(const TestCall& what);

// The result of a checked collective: how the backend executed it, and what is wrong, or "".
struct Checked {
  ExecutionInfo execution;
  std::string fault;
};

// Fills the buffers from `seed`, runs the collective, waits, and checks every element, the guards around the buffers,
// and that send is unchanged unless it is also recv. For results that must be equal on all ranks, it adds a digest to
// *digest (optional); of a large result each rank then checks a part of the elements, and all ranks together check all.
// Uses only rank, size and deadline of the context, so that several threads can call it.
Checked run_checked(Context& context, CommBackend& backend, const TestCall& what, uint64_t seed,
                    Context* digest = nullptr);

// Only runs it, with its own buffers. For cases about how a collective ends.
void run_plain(Context& context, CommBackend& backend, const TestCall& what, milliseconds timeout);

}  // namespace ddprun::conformance
