// One collective without its buffers: its name in messages, and the check of its arguments.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "ddprun/comm_backend.hpp"

namespace ddprun::comm {

enum class Kind : uint8_t { allreduce, broadcast, allgather, reduce_scatter, barrier, exchange };

inline constexpr std::size_t kKindCount = 6;

const char* name_of(Kind kind);
// allreduce and reduce_scatter.
constexpr bool reduces(Kind kind) {
  return kind == Kind::allreduce || kind == Kind::reduce_scatter;
}

// Cut the vector in one block per rank.
constexpr bool splits_in_blocks(Kind kind) {
  return kind == Kind::allgather || kind == Kind::reduce_scatter;
}
// busbw = algbw * this: 2(n-1)/n for allreduce, (n-1)/n for allgather and reduce_scatter, 1 for broadcast
// (https://github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md).
double bus_factor(Kind kind, int ranks);

// A collective without its buffers. Ranks exchange it as bytes, and the recorder keeps it. The members after `count`
// have the meaning of those of Collective; where the kind does not use one, it is as the caller left it.
struct CallShape {
  uint64_t number = 0;  // 1 for the first call on its backend; 0: any call of this shape
  uint64_t count = 0;
  int64_t bucket = -1;
  int32_t root = 0;
  Kind kind = Kind::barrier;
  DType dtype = DType::float32;
  Op op = Op::sum;
  Memory memory = Memory::host;

  friend bool operator==(const CallShape&, const CallShape&) = default;
};
static_assert(sizeof(CallShape) == 32);  // without padding

CallShape shape_of(Kind kind, uint64_t number, const Collective& call);
CallShape shape_of(Kind kind, uint64_t number, const Exchange& call);
// Whether it has a dtype and a count that all ranks share: not a barrier or an exchange, nor what check() refuses.
bool has_data(const CallShape& shape);

// "allreduce 57 (float32 x 1048576, sum)", "broadcast 12 (int64 x 7, root 0)", "barrier 3"; without a number
// "allreduce (float32 x 1048576, sum)".
std::string describe(const CallShape& shape);
// "gloo: rank 1: allreduce 57 (float32 x 1048576, sum): "
std::string prefix(const CommBackend& backend, const CallShape& shape);

// Throws CommError for arguments that no backend can serve (invalid), and for memory that capabilities() does not name
// (unsupported). `shape` is that of `call`.
void check(const CommBackend& backend, const CallShape& shape, const Collective& call);
void check(const CommBackend& backend, const CallShape& shape, const Exchange& call);

// Starts it: any kind but an exchange, whose arguments are others.
Work start(CommBackend& backend, Kind kind, const Collective& what);

// Forwards every call to `inner`, which must outlive it. A backend around another one derives from it.
class ForwardingBackend : public CommBackend {
 public:
  explicit ForwardingBackend(CommBackend& inner) : ForwardingBackend(inner, inner.capabilities()) {}
  ForwardingBackend(CommBackend& inner, Capabilities capabilities)
      : CommBackend(inner.rank(), inner.size(), inner.name(), std::move(capabilities)), inner_(inner) {}

  Work allreduce(const Collective& call) final { return start(Kind::allreduce, call); }
  Work broadcast(const Collective& call) final { return start(Kind::broadcast, call); }
  Work allgather(const Collective& call) final { return start(Kind::allgather, call); }
  Work reduce_scatter(const Collective& call) final { return start(Kind::reduce_scatter, call); }
  Work barrier() final { return start(Kind::barrier, {}); }
  Work exchange(const Exchange& call) override { return inner_.exchange(call); }
  void async_error() override { inner_.async_error(); }
  void abort() noexcept override { inner_.abort(); }
  std::shared_ptr<void> allocate(std::size_t bytes) override { return inner_.allocate(bytes); }

 protected:
  virtual Work start(Kind kind, const Collective& call) { return comm::start(inner_, kind, call); }

 private:
  CommBackend& inner_;
};

// An ExecutionInfo that outlives its backend.
struct Execution {
  Execution() = default;
  Execution(std::string its_algorithm, std::string its_transport)
      : algorithm(std::move(its_algorithm)), transport(std::move(its_transport)) {}
  Execution(const ExecutionInfo& info) : algorithm(info.algorithm), transport(info.transport) {}

  std::string algorithm;
  std::string transport;
};

}  // namespace ddprun::comm
