#include "comm/plugin_backend.hpp"

#include <atomic>
#include <cstring>

#include "comm/call.hpp"

namespace ddprun::comm {
namespace {

constexpr uint32_t kAll = ~0U;

class SingleProcessBackend final : public CommBackend {
 public:
  SingleProcessBackend()
      : CommBackend(0, 1, "single-process",
                    {.host = true,
                     .cuda = true,
                     .blocking = true,
                     .stream_ordered = true,
                     .capture = true,
                     .alloc = false,
                     .reduce_scatter = true,
                     .alloc_memory = Memory::host,
                     .algorithms = {{"identity", kAll, kAll}}}) {}

  Work allreduce(const Collective& call) override { return run(Kind::allreduce, call); }
  Work broadcast(const Collective& call) override { return run(Kind::broadcast, call); }
  Work allgather(const Collective& call) override { return run(Kind::allgather, call); }
  Work barrier() override { return run(Kind::barrier, {}); }
  Work reduce_scatter(const Collective& call) override { return run(Kind::reduce_scatter, call); }
  void abort() noexcept override { aborted_ = true; }

 private:
  Work run(Kind kind, const Collective& what) {
    const Call call{kind, ++calls_, what};
    check(*this, call);
    if (aborted_) throw CommError(CommStatus::aborted, prefix(*this, call) + "aborted");
    const bool in_place = what.send == nullptr || what.send == what.recv || kind == Kind::broadcast;
    if (!in_place && what.count > 0) {
      if (what.memory == Memory::cuda) {
        throw CommError(CommStatus::unsupported, prefix(*this, call) + "CUDA memory must be in place");
      }
      std::memcpy(what.recv, what.send, what.count * size_of(what.dtype));
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
