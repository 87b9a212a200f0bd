// The data of a case, and one of its collectives: runs it and compares the result with the reference.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/call.hpp"
#include "testing/arithmetic.hpp"
#include "tools/conformance/guarded.hpp"
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
  std::function<std::size_t(int from, int to)> sizes{};  // of the blocks of an exchange; not set: `count`
  milliseconds overwrite_after{0};  // not 0: run_checked() overwrites the buffers after wait, and looks again later

  std::size_t between(int from, int to) const { return sizes ? sizes(from, to) : count; }
};

// An allreduce with a dtype and an op that the algorithm supports, for cases that are not about them.
TestCall common_call(const Settings& settings, const std::string& algorithm, std::size_t count);
// `like`, as each kind of collective with data that the plugin has.
std::vector<TestCall> calls_of_each_kind(const Settings& settings, const TestCall& like);

// A piece of host memory, and the memory that a backend gets instead of it: the piece itself, or GPU memory of the same
// size and alignment; or `own`, if it is not null. `memory` and `own` outlive it.
class Buffer : public Guarded {
 public:
  explicit Buffer(const tools::BufferMemory& memory, std::size_t bytes, std::size_t shift = 0, void* own = nullptr);

  // The backend's address of a byte.
  void* at(std::size_t offset) const { return image_ + offset; }
  // Copies the piece to the backend's memory, and back. Without `own`, the guards too.
  void put() { memory_.put(image_ - margin_, data() - margin_, copied_); }
  void get() { memory_.get(data() - margin_, image_ - margin_, copied_); }

 private:
  const tools::BufferMemory& memory_;
  std::ptrdiff_t margin_ = 0;
  std::size_t copied_;
  std::shared_ptr<void> on_gpu_;
  unsigned char* image_;
};

// Starts it. The blocks of an exchange follow each other in call.send and call.recv.
Work start(CommBackend& backend, const TestCall& what, const Collective& call);
// The elements of the two buffers of a rank.
struct Counts {
  std::size_t send, recv;
};
Counts counts_of(const Context& context, const TestCall& what);

// The buffers of a collective on one rank, and their content before it. In place, as a broadcast always is and an
// exchange never, the first one holds both.
class Buffers {
 public:
  // In `own`, if it is not null: in place, of an allreduce.
  Buffers(Context& context, const TestCall& what, void* own = nullptr);

  // Fills them with this rank's numbers of `seed`, and with others where the result goes.
  void fill(uint64_t seed);
  Work start(CommBackend& backend) const;
  ExecutionInfo run(CommBackend& backend) const { return context_.wait(start(backend)); }
  // Reads the result. What is wrong with it, or "". Of equal results on all ranks (`divided`), each rank checks a part.
  std::string fault(bool divided = false);

  std::size_t recv_count() const { return counts_.recv; }
  unsigned char* recv() { return (what_.in_place ? first_ : second_).data() + recv_at(); }
  // Whether something writes into them meanwhile: fills both with other numbers, and looks again.
  std::string fault_after_overwrite(milliseconds meanwhile);

 private:
  std::string fault_around() const;
  std::size_t block_bytes() const { return what_.count * size_of(what_.dtype); }
  // Out of place, both start one element after a cache line.
  std::size_t shift() const { return what_.in_place ? 0 : size_of(what_.dtype); }
  std::size_t send_at() const { return what_.in_place && what_.kind == Kind::allgather ? block_ : 0; }
  std::size_t recv_at() const { return what_.in_place && what_.kind == Kind::reduce_scatter ? block_ : 0; }
  void put();

  Context& context_;
  TestCall what_;
  uint64_t seed_ = 0;
  Counts counts_;
  std::size_t block_;  // where this rank's block begins
  Buffer first_, second_;
  std::vector<unsigned char> before_;
};

// "float32 sum count 1024 in place"
std::string describe(const TestCall& what);

// The result of a checked collective: how the backend executed it, and what is wrong, or "".
struct Checked {
  ExecutionInfo execution;
  std::string fault;
};

// Fills the buffers from `seed`, runs the collective, waits, and checks every element, the guards around the buffers,
// and that send is unchanged unless it is also recv. Results that must be equal on all ranks are compared by *same
// (optional); of a large result each rank then checks a part of the elements, and all ranks together check all.
// Uses only rank, size and deadline of the context, so that several threads can call it.
Checked run_checked(Context& context, CommBackend& backend, const TestCall& what, uint64_t seed,
                    Context* same = nullptr);

// Only runs it, with its own buffers. For cases about how a collective ends.
void run_plain(Context& context, CommBackend& backend, const TestCall& what, milliseconds timeout);

// Asks test() until it is true, at most for this time. Returns its last answer.
bool is_done_within(milliseconds limit, Work& work);

// How a call ended, and after what time.
struct End {
  bool threw = false;
  ExitCode code = ExitCode::ok;
  std::string text;
  milliseconds took{0};

  bool names(const char* status) const { return text.find(std::string(status) + ": ") != std::string::npos; }
};
End end_of(const std::function<void()>& call);
// As run_plain(), at most settings().deadline.
End end_of(Context& context, CommBackend& backend, const TestCall& what);

}  // namespace ddprun::conformance
