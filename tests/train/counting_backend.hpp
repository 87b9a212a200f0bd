// A backend that counts the allreduces which it passes on.
#pragma once

#include "comm/comm_backend.hpp"

namespace ddprun::comm {

// `inner` must outlive it.
class CountingBackend : public CommBackend {
 public:
  explicit CountingBackend(CommBackend& inner) : inner_(inner) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  const std::string& name() const override { return inner_.name(); }
  const Capabilities& capabilities() const override { return inner_.capabilities(); }
  RequestPtr allreduce(const void* send, const Buffer& recv, Op op) override {
    ++allreduces;
    return inner_.allreduce(send, recv, op);
  }
  RequestPtr broadcast(const Buffer& buffer, int root) override { return inner_.broadcast(buffer, root); }
  RequestPtr allgather(const void* send, const Buffer& recv) override { return inner_.allgather(send, recv); }
  RequestPtr reduce_scatter(const void* send, const Buffer& recv, Op op) override {
    return inner_.reduce_scatter(send, recv, op);
  }
  RequestPtr barrier() override { return inner_.barrier(); }
  void abort() noexcept override { inner_.abort(); }
  std::shared_ptr<void> allocate(std::size_t bytes) override { return inner_.allocate(bytes); }

  int allreduces = 0;

 private:
  CommBackend& inner_;
};

}  // namespace ddprun::comm
