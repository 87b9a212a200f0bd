#include "comm/plugin_backend.hpp"

#include <atomic>
#include <cstring>

#include "comm/call.hpp"

namespace ddprun::comm {
namespace {

class SingleProcessBackend final : public CommBackend {
 public:
  SingleProcessBackend()
      : CommBackend(0, 1, "single-process",
                    {.host = true,
                     .cuda = true,
                     .blocking = true,
                     .stream_ordered = true,
                     .alloc = false,
                     .reduce_scatter = true,
                     .exchange = true,
                     .alloc_memory = Memory::host,
                     .algorithms = {{"identity", ~0U, ~0U}}}) {}

  Work allreduce(const Collective& call) override { return run(Kind::allreduce, call); }
  Work broadcast(const Collective& call) override { return run(Kind::broadcast, call); }
  Work allgather(const Collective& call) override { return run(Kind::allgather, call); }
  Work barrier() override { return run(Kind::barrier, {}); }
  Work reduce_scatter(const Collective& call) override { return run(Kind::reduce_scatter, call); }
  Work exchange(const Exchange& call) override {
    check(*this, shape_of(Kind::exchange, calls_ + 1, call), call);
    const Block &from = call.send[0], &to = call.recv[0];
    const DType bytes = DType::uint8;
    return run(Kind::exchange,
               {.send = from.data, .recv = to.data, .count = to.bytes, .dtype = bytes, .memory = call.memory});
  }
  void abort() noexcept override { aborted_ = true; }

 private:
  Work run(Kind kind, const Collective& call) {
    const CallShape shape = shape_of(kind, ++calls_, call);
    check(*this, shape, call);
    if (aborted_) throw CommError(CommStatus::aborted, prefix(*this, shape) + "aborted");
    const bool in_place = call.send == nullptr || call.send == call.recv || kind == Kind::broadcast;
    if (!in_place && call.count > 0) {
      if (call.memory == Memory::cuda) {
        throw CommError(CommStatus::unsupported, prefix(*this, shape) + "CUDA memory must be in place");
      }
      std::memcpy(call.recv, call.send, call.count * size_of(call.dtype));
    }
    return {*this, done_};
  }

  uint64_t calls_ = 0;
  std::atomic<bool> aborted_ = false;
  Request done_{{"identity", "memory"}};
};

}  // namespace

std::unique_ptr<CommBackend> single_process_backend() {
  return std::make_unique<SingleProcessBackend>();
}

}  // namespace ddprun::comm
