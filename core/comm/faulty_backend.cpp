#include "comm/faulty_backend.hpp"

#include <thread>
#include <utility>

namespace ddprun::comm {
namespace {

DType integer_of(std::size_t bytes) {
  return bytes == 2 ? DType::int16 : bytes == 4 ? DType::int32 : DType::int64;
}

class FaultyBackend final : public CommBackend {
 public:
  FaultyBackend(std::unique_ptr<CommBackend> inner, const FaultSettings& fault,
                std::shared_ptr<const FlightRecorder> recorder)
      : CommBackend(inner->rank(), inner->size(), inner->name(), inner->capabilities()),
        inner_(std::move(inner)),
        fault_(fault),
        recorder_(std::move(recorder)) {}

  Work allreduce(const Collective& call) override {
    sleep();
    if (fault_.kind == CommFault::delay || done_ || recorder_->step() != fault_.step) return inner_->allreduce(call);
    done_ = true;
    if (fault_.kind == CommFault::drop) return {*this, dropped_};
    return inner_->allreduce(changed(call));
  }
  Work broadcast(const Collective& call) override {
    sleep();
    return inner_->broadcast(call);
  }
  Work allgather(const Collective& call) override {
    sleep();
    return inner_->allgather(call);
  }
  Work reduce_scatter(const Collective& call) override {
    sleep();
    return inner_->reduce_scatter(call);
  }
  Work barrier() override {
    sleep();
    return inner_->barrier();
  }
  void async_error() override { inner_->async_error(); }
  void abort() noexcept override { inner_->abort(); }
  std::shared_ptr<void> allocate(std::size_t bytes) override { return inner_->allocate(bytes); }

 private:
  Collective changed(Collective call) const {
    if (fault_.kind == CommFault::shape && call.count > 0) --call.count;
    if (fault_.kind == CommFault::dtype) call.dtype = integer_of(size_of(call.dtype));
    if (fault_.kind == CommFault::op) call.op = Op::max;
    if (fault_.kind == CommFault::order) ++call.bucket;
    return call;
  }
  void sleep() const {
    if (fault_.kind == CommFault::delay && recorder_->step() >= fault_.step) std::this_thread::sleep_for(fault_.sleep);
  }

  const std::unique_ptr<CommBackend> inner_;
  const FaultSettings fault_;
  const std::shared_ptr<const FlightRecorder> recorder_;
  bool done_ = false;
  Request dropped_{{"none", "dropped by [faults]"}};
};

}  // namespace

std::unique_ptr<CommBackend> faulty(std::unique_ptr<CommBackend> inner, const FaultSettings& fault,
                                    std::shared_ptr<const FlightRecorder> recorder) {
  return std::make_unique<FaultyBackend>(std::move(inner), fault, std::move(recorder));
}

}  // namespace ddprun::comm
