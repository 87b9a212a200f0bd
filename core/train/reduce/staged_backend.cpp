#include "train/reduce/staged_backend.hpp"

#include <set>

#include "comm/call.hpp"
#include "ddprun/error.hpp"
#include "train/device/streams.hpp"

namespace ddprun::train {
namespace {

using comm::Kind;

// A tensor over memory that it does not own.
torch::Tensor bytes_at(const void* data, std::size_t bytes, torch::Device device) {
  return at::for_blob(const_cast<void*>(data), {static_cast<int64_t>(bytes)})
      .options(torch::TensorOptions(device).dtype(torch::kUInt8))
      .target_device(device)
      .make_tensor();
}

void queue_copy(const torch::Tensor& to, const torch::Tensor& from) {
  constexpr bool non_blocking = true;
  at::Tensor(to).copy_(from, non_blocking);
}

Capabilities with_both_memories(Capabilities capabilities) {
  capabilities.host = capabilities.cuda = true;
  return capabilities;
}

class StagedBackend final : public comm::ForwardingBackend {
 public:
  StagedBackend(std::unique_ptr<CommBackend> inner, torch::Device device, std::chrono::milliseconds timeout)
      : ForwardingBackend(*inner, with_both_memories(inner->capabilities())),
        inner_(std::move(inner)),
        device_(device),
        timeout_(timeout),
        side_(side_stream(device)) {}

  // Never through other memory: `inner` refuses what it does not take.
  Work exchange(const Exchange& what) override {
    if (what.memory == Memory::cuda && !inner_->capabilities().stream_ordered) current_stream(device_).synchronize();
    return inner_->exchange(what);
  }

 private:
  Work start(Kind kind, const Collective& what) override {
    if (kind == Kind::barrier) return inner_->barrier();
    const Capabilities& inner = inner_->capabilities();
    const bool takes = what.memory == Memory::host ? inner.host : inner.cuda;
    if (!takes) return stage(kind, what);
    if (what.memory == Memory::cuda && !inner.stream_ordered) current_stream(device_).synchronize();
    return comm::start(*inner_, kind, what);
  }

  Work stage(Kind kind, const Collective& what) {
    const comm::CallShape shape = comm::shape_of(kind, ++staged_, what);
    check(*this, shape, what);
    const bool from_host = what.memory == Memory::host;
    const c10::StreamGuard on(from_host ? side_ : current_stream(device_));
    if (!from_host && what.stream != handle(on.current_stream())) {
      throw Error(ExitCode::failure, prefix(*this, shape) + "the buffer's stream is not the thread's current one");
    }
    const std::size_t one = what.count * size_of(what.dtype), all = one * static_cast<std::size_t>(size());
    const torch::Device here = from_host ? torch::Device(torch::kCPU) : device_;
    const torch::Tensor recv_here = bytes_at(what.recv, kind == Kind::allgather ? all : one, here);

    Collective moved = what;
    moved.memory = from_host ? Memory::cuda : Memory::host;
    moved.stream = from_host ? handle(on.current_stream()) : nullptr;
    const torch::Tensor recv = memory_there(from_host, recv_here.numel());
    torch::Tensor send = recv;
    if (kind == Kind::broadcast || (kind == Kind::allreduce && what.send == what.recv)) {
      queue_copy(recv, recv_here);
    } else {
      const torch::Tensor send_here = bytes_at(what.send, kind == Kind::reduce_scatter ? all : one, here);
      send = memory_there(from_host, send_here.numel());
      queue_copy(send, send_here);
    }
    moved.send = send.data_ptr();
    moved.recv = recv.data_ptr();
    const ExecutionInfo info = run(kind, moved, on.current_stream());
    queue_copy(recv_here, recv);
    on.current_stream().synchronize();
    const std::string transport = std::string(info.transport) + (from_host ? "" : " via host");
    done_.info = {info.algorithm, transports_.insert(transport).first->c_str()};
    return {*this, done_};
  }

  torch::Tensor memory_there(bool on_device, int64_t bytes) const {
    const auto options = torch::TensorOptions().dtype(torch::kUInt8);
    return torch::empty({bytes}, on_device ? options.device(device_) : options.pinned_memory(true));
  }

  ExecutionInfo run(Kind kind, const Collective& what, const c10::Stream& stream) {
    stream.synchronize();
    const ExecutionInfo info = comm::start(*inner_, kind, what).wait(timeout_);
    // Stream-ordered work may still fail; a barrier reports it.
    if (what.memory == Memory::cuda && inner_->capabilities().stream_ordered) inner_->barrier().wait(timeout_);
    return info;
  }

  const std::unique_ptr<CommBackend> inner_;
  const torch::Device device_;
  const std::chrono::milliseconds timeout_;
  const c10::Stream side_;  // for host values
  uint64_t staged_ = 0;
  Request done_;                      // of the last staged call, which is complete
  std::set<std::string> transports_;  // names that callers may keep
};

}  // namespace

std::unique_ptr<CommBackend> staged(std::unique_ptr<CommBackend> inner, torch::Device device,
                                    std::chrono::milliseconds timeout) {
  const Capabilities& takes = inner->capabilities();
  if (takes.host && takes.cuda && takes.stream_ordered) return inner;
  return std::make_unique<StagedBackend>(std::move(inner), device, timeout);
}

}  // namespace ddprun::train
