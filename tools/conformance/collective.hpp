// The data of a case, and one of its collectives: runs it and compares the result with the reference.
#pragma once

#include <memory>
#include <string>
#include <vector>

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

// The memory that a backend gets instead of a piece of host memory: that piece itself, or GPU memory of the same size
// and alignment; or `own`, if it is not null. The piece, `memory` and `own` outlive it.
class Image {
 public:
  Image(const tools::BufferMemory& memory, void* host, std::size_t bytes, void* own = nullptr);

  // The backend's address for this address of the piece.
  void* at(const void* host) const;
  // Copies the piece to the image, and the image to the piece.
  void put() const { memory_.put(at(host_), host_, bytes_); }
  void get() const { memory_.get(host_, at(host_), bytes_); }

 private:
  const tools::BufferMemory& memory_;
  unsigned char* host_;
  std::size_t bytes_;
  std::shared_ptr<void> on_gpu_;
  unsigned char* first_;
};

// A vector that the ranks reduce in place, in `own` if that is not null.
class Reduced {
 public:
  Reduced(Context& context, DType dtype, Op op, std::size_t count, void* own = nullptr);

  // Fills it with this rank's numbers of `seed`.
  void fill(uint64_t seed);
  Collective call() const;
  // Reads the result. What is wrong with it, or "".
  std::string fault();

 private:
  Context& context_;
  TestCall what_;
  uint64_t seed_ = 0;
  std::vector<unsigned char> content_;
  Image image_;
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
