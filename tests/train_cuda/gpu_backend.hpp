// Backends for a fake GPU, on top of one for host memory: the fake GPU checks which stream reads and writes what.
#pragma once

#include "fakes/cuda/torch_test.hpp"

#include <deque>

#include "comm/call.hpp"
#include "comm/joined.hpp"
#include "train/device/streams.hpp"
#include "train/reduce/staged_backend.hpp"

namespace ddprun::testing {

// Supports CUDA memory only. Stream-ordered, as NCCL: a collective waits for the caller's stream, runs on its own
// stream, and wait() makes the caller's stream wait for it. Otherwise it blocks, and uses the memory without any
// ordering.
class GpuBackend final : public CommBackend {
 public:
  explicit GpuBackend(std::unique_ptr<CommBackend> inner, bool gives_memory = false, bool ordered = true)
      : CommBackend(inner->rank(), inner->size(), inner->name(), at_gpu(inner->capabilities(), gives_memory, ordered)),
        inner_(std::move(inner)),
        own_(fake_gpu::stream_of(native(train::side_stream(fake_gpu::kGpu)), 0)) {}

  Work allreduce(const Collective& call) override { return start(comm::Kind::allreduce, call); }
  Work broadcast(const Collective& call) override { return start(comm::Kind::broadcast, call); }
  Work allgather(const Collective& call) override { return start(comm::Kind::allgather, call); }
  Work reduce_scatter(const Collective& call) override { return start(comm::Kind::reduce_scatter, call); }
  Work barrier() override {
    ++calls_;
    return inner_->barrier();
  }
  void abort() noexcept override { inner_->abort(); }
  std::shared_ptr<void> allocate(std::size_t bytes) override {
    auto memory = inner_->allocate(bytes);
    given.push_back({static_cast<const std::byte*>(memory.get()), bytes});
    return memory;
  }
  ExecutionInfo wait(Request& request, std::chrono::milliseconds timeout) override {
    auto& ordered = static_cast<Ordered&>(request);
    fake_gpu::block(ordered.caller, *ordered.done);
    return ordered.inner.wait(timeout);
  }

  struct Given {
    const std::byte* begin;
    std::size_t bytes;
  };
  std::vector<Given> given;

 private:
  struct Ordered : Request {
    Ordered(Work its_inner, fake_gpu::Stream own, fake_gpu::Stream its_caller)
        : inner(std::move(its_inner)), done(fake_gpu::make_event()), caller(its_caller) {
      fake_gpu::record(*done, own);
    }
    Work inner;
    const std::shared_ptr<fake_gpu::Event> done;
    const fake_gpu::Stream caller;
  };

  static Capabilities at_gpu(Capabilities capabilities, bool gives_memory, bool ordered) {
    capabilities.host = false;
    capabilities.cuda = true;
    capabilities.stream_ordered = ordered;
    capabilities.blocking = !ordered;
    capabilities.alloc = gives_memory;
    capabilities.alloc_memory = Memory::cuda;
    return capabilities;
  }

  Work start(comm::Kind kind, const Collective& call) {
    const fake_gpu::Stream caller = fake_gpu::stream_of(native(call.stream), 0);
    const auto ready = fake_gpu::make_event();
    fake_gpu::record(*ready, caller);
    if (capabilities().stream_ordered) fake_gpu::block(own_, *ready);
    fake_gpu::begin(own_);
    const std::size_t one = call.count * size_of(call.dtype), all = one * static_cast<std::size_t>(size());
    const std::string what = comm::describe(comm::shape_of(kind, ++calls_, call));
    if (kind != comm::Kind::broadcast && call.send != nullptr) {
      fake_gpu::access(own_, call.send, kind == comm::Kind::reduce_scatter ? all : one, false, what);
    }
    fake_gpu::access(own_, call.recv, kind == comm::Kind::allgather ? all : one, true, what);
    fake_gpu::note(fake_gpu::name_of(caller) + " calls " + what);
    Collective there = call;
    there.memory = Memory::host;
    there.stream = nullptr;
    return {*this, started_.emplace_back(comm::start(*inner_, kind, there), own_, caller)};
  }

  static std::int64_t native(void* stream) { return reinterpret_cast<std::int64_t>(stream); }
  static std::int64_t native(const c10::Stream& stream) { return native(train::handle(stream)); }

  const std::unique_ptr<CommBackend> inner_;
  const fake_gpu::Stream own_;
  uint64_t calls_ = 0;
  std::deque<Ordered> started_;  // kept until the end, because a test makes only few
};

inline std::unique_ptr<GpuBackend> join_gpu(Rank& rank, bool gives_memory = false) {
  return std::make_unique<GpuBackend>(comm::join_good(rank), gives_memory);
}

// What the fake GPU recorded during body.
inline std::string record_of(const std::function<void()>& body) {
  ddprun_fake_gpu_forget();
  body();
  return ddprun_fake_gpu_record();
}

// Both kinds of backend for a GPU: one with CUDA memory, and one with host memory, staged.
inline std::unique_ptr<CommBackend> join_either(Rank& rank, bool at_gpu) {
  std::unique_ptr<CommBackend> inner = comm::join_good(rank);
  if (at_gpu) inner = std::make_unique<GpuBackend>(std::move(inner));
  return train::staged(std::move(inner), fake_gpu::kGpu, kTimeout);
}

}  // namespace ddprun::testing
