// One collective call as a value, so that each backend and decorator is one function and not five.
#pragma once

#include <string>

#include "comm/comm_backend.hpp"

namespace ddprun::comm {

enum class Kind : int32_t { allreduce, broadcast, allgather, reduce_scatter, barrier };

const char* name_of(Kind kind);

struct Call {
  Kind kind = Kind::barrier;
  uint64_t sequence = 0;  // 1 for the first call on its backend
  DType dtype = DType::uint8;
  Op op = Op::sum;  // allreduce and reduce_scatter
  int root = 0;     // broadcast
  Memory memory = Memory::host;
  std::size_t count = 0;  // elements of one rank: of the smaller of send and recv
  const void* send = nullptr;
  void* recv = nullptr;
  void* stream = nullptr;
};

// "allreduce 57 (float32 x 1048576, sum)", "broadcast 12 (int64 x 7, root 0)", "barrier 3".
std::string describe(const Call& call);
// "gloo: rank 1: allreduce 57 (float32 x 1048576, sum): "
std::string prefix(const std::string& backend, int rank, const Call& call);

// A CommBackend that sees every collective as a Call. Numbers the calls, and refuses what no backend can do:
// Error(plugin) for a null buffer, a root outside the group, avg of integers, an allgather whose recv the ranks do not
// divide, memory that capabilities() does not name.
class CallBackend : public CommBackend {
 public:
  RequestPtr allreduce(const void* send, const Buffer& recv, Op op) final;
  RequestPtr broadcast(const Buffer& buffer, int root) final;
  RequestPtr allgather(const void* send, const Buffer& recv) final;
  RequestPtr reduce_scatter(const void* send, const Buffer& recv, Op op) final;
  RequestPtr barrier() final;

 protected:
  virtual RequestPtr start(const Call& call) = 0;

  std::string prefix(const Call& call) const { return comm::prefix(name(), rank(), call); }

 private:
  RequestPtr submit(Call call);
  void require_valid(const Call& call) const;

  uint64_t sequence_ = 0;
};

// Makes the call on another backend, which numbers it by itself.
RequestPtr forward(CommBackend& backend, const Call& call);

// The request of a collective that ended when it was called.
RequestPtr finished(Served served);

}  // namespace ddprun::comm
