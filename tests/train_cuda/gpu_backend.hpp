// Backends that pretend to be at a GPU, over one that works on the host: the fake GPU sees which stream reads and
// writes what.
#pragma once

#include "fakes/cuda/torch_test.hpp"

#include "comm/call.hpp"
#include "comm/joined.hpp"
#include "train/reduce/staged_backend.hpp"
#include "train/device/streams.hpp"

namespace ddprun::testing {

// Takes CUDA memory only. Stream-ordered, as NCCL is: a collective waits for what the caller's stream holds, runs
// on a stream of its own, and wait() makes the caller's stream wait for it.
// Else it blocks, and takes the memory as it is.
class GpuBackend final : public comm::CallBackend {
 public:
  explicit GpuBackend(std::unique_ptr<comm::CommBackend> inner, bool gives_memory = false, bool ordered = true)
      : inner_(std::move(inner)), own_(fake_gpu::stream_of(native(train::side_stream(fake_gpu::kGpu)), 0)) {
    capabilities_ = inner_->capabilities();
    capabilities_.host = false;
    capabilities_.cuda = true;
    capabilities_.stream_ordered = ordered;
    capabilities_.blocking = !ordered;
    capabilities_.alloc = gives_memory;
    capabilities_.alloc_memory = comm::Memory::cuda;
  }

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  const std::string& name() const override { return inner_->name(); }
  const comm::Capabilities& capabilities() const override { return capabilities_; }
  void abort() noexcept override { inner_->abort(); }
  std::shared_ptr<void> allocate(std::size_t bytes) override {
    auto memory = inner_->allocate(bytes);
    given.push_back({static_cast<const std::byte*>(memory.get()), bytes});
    return memory;
  }

  struct Given {
    const std::byte* begin;
    std::size_t bytes;
  };
  std::vector<Given> given;

 protected:
  comm::RequestPtr start(const comm::Call& call) override {
    if (call.kind == comm::Kind::barrier) return comm::forward(*inner_, call);
    const fake_gpu::Stream caller = fake_gpu::stream_of(native(call.stream), 0);
    const auto ready = fake_gpu::make_event();
    fake_gpu::record(*ready, caller);
    if (capabilities_.stream_ordered) fake_gpu::block(own_, *ready);
    fake_gpu::begin(own_);
    const std::size_t one = call.count * comm::size_of(call.dtype), all = one * static_cast<std::size_t>(size());
    const std::string what = comm::describe(call);
    if (call.send != nullptr) {
      fake_gpu::access(own_, call.send, call.kind == comm::Kind::reduce_scatter ? all : one, false, what);
    }
    fake_gpu::access(own_, call.recv, call.kind == comm::Kind::allgather ? all : one, true, what);
    fake_gpu::note(fake_gpu::name_of(caller) + " calls " + what);
    comm::Call there = call;
    there.memory = comm::Memory::host;
    there.stream = nullptr;
    return std::make_unique<Ordered>(comm::forward(*inner_, there), own_, caller);
  }

 private:
  class Ordered final : public comm::Request {
   public:
    Ordered(comm::RequestPtr inner, fake_gpu::Stream own, fake_gpu::Stream caller)
        : inner_(std::move(inner)), done_(fake_gpu::make_event()), caller_(caller) {
      fake_gpu::record(*done_, own);
    }
    bool test() override { return true; }
    comm::Served wait(std::chrono::milliseconds timeout) override {
      fake_gpu::block(caller_, *done_);
      return inner_->wait(timeout);
    }

   private:
    const comm::RequestPtr inner_;
    const std::shared_ptr<fake_gpu::Event> done_;
    const fake_gpu::Stream caller_;
  };

  static std::int64_t native(void* stream) { return reinterpret_cast<std::int64_t>(stream); }
  static std::int64_t native(const c10::Stream& stream) { return native(train::handle(stream)); }

  const std::unique_ptr<comm::CommBackend> inner_;
  const fake_gpu::Stream own_;
  comm::Capabilities capabilities_;
};

inline std::unique_ptr<GpuBackend> join_gpu(Rank& rank, bool gives_memory = false) {
  return std::make_unique<GpuBackend>(comm::join_good(rank), gives_memory);
}

// What the fake GPU's record has of body.
inline std::string record_of(const std::function<void()>& body) {
  ddprun_fake_gpu_forget();
  body();
  return ddprun_fake_gpu_record();
}

// Both ways to serve a GPU: a backend at it, and one of the host, staged.
inline std::unique_ptr<comm::CommBackend> join_either(Rank& rank, bool at_gpu) {
  constexpr auto kTimeout = std::chrono::seconds(20);
  std::unique_ptr<comm::CommBackend> inner = comm::join_good(rank);
  if (at_gpu) inner = std::make_unique<GpuBackend>(std::move(inner));
  return train::staged(std::move(inner), fake_gpu::kGpu, kTimeout);
}

}  // namespace ddprun::testing
