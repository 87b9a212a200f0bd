#include "train/reduce/staged_backend.hpp"

#include "base/error.hpp"
#include "comm/call.hpp"
#include "train/device/streams.hpp"

namespace ddprun::train {
namespace {

using comm::Call;
using comm::Kind;
using comm::Memory;

// Bytes that somebody else owns.
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

class StagedBackend final : public comm::CallBackend {
 public:
  StagedBackend(std::unique_ptr<comm::CommBackend> inner, torch::Device device, std::chrono::milliseconds timeout)
      : inner_(std::move(inner)),
        device_(device),
        timeout_(timeout),
        capabilities_(inner_->capabilities()),
        side_(side_stream(device)) {
    capabilities_.host = capabilities_.cuda = true;
  }

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  const std::string& name() const override { return inner_->name(); }
  const comm::Capabilities& capabilities() const override { return capabilities_; }
  void throw_if_failed() override { inner_->throw_if_failed(); }
  void abort() noexcept override { inner_->abort(); }
  std::shared_ptr<void> allocate(std::size_t bytes) override { return inner_->allocate(bytes); }

 protected:
  comm::RequestPtr start(const Call& call) override {
    const comm::Capabilities& inner = inner_->capabilities();
    const bool takes = call.memory == Memory::host ? inner.host : inner.cuda;
    if (!takes && call.kind != Kind::barrier) return stage(call);
    if (call.memory == Memory::cuda && !inner.stream_ordered) current_stream(device_).synchronize();
    return comm::forward(*inner_, call);
  }

 private:
  comm::RequestPtr stage(const Call& call) {
    const bool from_host = call.memory == Memory::host;
    const c10::StreamGuard on(from_host ? side_ : current_stream(device_));
    if (!from_host && call.stream != handle(on.current_stream())) {
      throw Error(ExitCode::failure, prefix(call) + "the buffer's stream is not the thread's current one");
    }
    const std::size_t one = call.count * comm::size_of(call.dtype), all = one * static_cast<std::size_t>(size());
    const torch::Device here = from_host ? torch::Device(torch::kCPU) : device_;
    const torch::Tensor recv_here = bytes_at(call.recv, call.kind == Kind::allgather ? all : one, here);

    Call moved = call;
    moved.memory = from_host ? Memory::cuda : Memory::host;
    moved.stream = from_host ? handle(on.current_stream()) : nullptr;
    const torch::Tensor recv = memory_there(from_host, recv_here.numel());
    torch::Tensor send = recv;  // in place
    if (call.send == nullptr || (call.kind == Kind::allreduce && call.send == call.recv)) {
      queue_copy(recv, recv_here);
    } else {
      const torch::Tensor send_here = bytes_at(call.send, call.kind == Kind::reduce_scatter ? all : one, here);
      send = memory_there(from_host, send_here.numel());
      queue_copy(send, send_here);
    }
    moved.send = call.send == nullptr ? nullptr : send.data_ptr();
    moved.recv = recv.data_ptr();
    const comm::Served served = run(moved, on.current_stream());
    queue_copy(recv_here, recv);
    on.current_stream().synchronize();
    return comm::finished({served.algorithm, served.transport + (from_host ? "" : " via host")});
  }

  torch::Tensor memory_there(bool on_device, int64_t bytes) const {
    const auto options = torch::TensorOptions().dtype(torch::kUInt8);
    return torch::empty({bytes}, on_device ? options.device(device_) : options.pinned_memory(true));
  }

  comm::Served run(const Call& call, const c10::Stream& stream) {
    stream.synchronize();
    const comm::Served served = comm::forward(*inner_, call)->wait(timeout_);
    // What is ordered on a stream may still fail there; a barrier tells.
    if (call.memory == Memory::cuda && inner_->capabilities().stream_ordered) inner_->barrier()->wait(timeout_);
    return served;
  }

  const std::unique_ptr<comm::CommBackend> inner_;
  const torch::Device device_;
  const std::chrono::milliseconds timeout_;
  comm::Capabilities capabilities_;
  const c10::Stream side_;  // for values of the host
};

}  // namespace

std::unique_ptr<comm::CommBackend> staged(std::unique_ptr<comm::CommBackend> inner, torch::Device device,
                                          std::chrono::milliseconds timeout) {
  const comm::Capabilities& takes = inner->capabilities();
  if (takes.host && takes.cuda && takes.stream_ordered) return inner;
  return std::make_unique<StagedBackend>(std::move(inner), device, timeout);
}

}  // namespace ddprun::train
