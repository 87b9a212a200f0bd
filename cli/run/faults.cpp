#include "cli/run/observers.hpp"

#include <chrono>
#include <csignal>
#include <limits>
#include <thread>
#include <utility>

#include "base/log.hpp"
#include "comm/call.hpp"
#include "ddprun/error.hpp"

namespace ddprun::run {
namespace {

// Its own function, so that a stack names it.
[[gnu::noinline]] void spin_for_ever() {
  for (volatile uint64_t turns = 0;;) turns = turns + 1;
}

// Goes wrong in the forward or the backward pass.
class FaultInStep final : public train::Observer {
 public:
  FaultInStep(const config::Experiment::Faults& fault, torch::Tensor parameter)
      : fault_(fault), parameter_(std::move(parameter)) {}

  void on_phase(Phase phase, int64_t step, int) override {
    if (phase != Phase::forward || step < fault_.step) return;
    const std::string& kind = fault_.kind;
    if (kind == "slow") return std::this_thread::sleep_for(std::chrono::duration<double>(fault_.seconds));
    if (done_) return;
    done_ = true;
    if (kind == "kill") ::raise(SIGKILL);
    if (kind == "stop") ::raise(SIGSTOP);
    if (kind == "spin") spin_for_ever();
    if (kind == "throw") throw Error(ExitCode::failure, "faults.kind = \"throw\": the exception that it asks for");
    if (kind == "nan_gradient") {
      // The hook's list may not change while it runs, so the hook stays.
      parameter_.register_hook([this](const torch::Tensor& gradient) {
        return std::exchange(poisoned_, true) ? gradient
                                              : torch::full_like(gradient, std::numeric_limits<double>::quiet_NaN());
      });
    }
  }

 private:
  const config::Experiment::Faults fault_;
  torch::Tensor parameter_;
  bool done_ = false, poisoned_ = false;
};

// Changes the first allreduce of the step, or leaves it out. It is above the
// backend that compares the calls of the ranks, and so not a plugin: what a plugin changes, that comparison does not
// see.
class FaultInAllreduce final : public comm::ForwardingBackend {
 public:
  FaultInAllreduce(std::unique_ptr<CommBackend> inner, const config::Experiment::Faults& fault,
                   std::shared_ptr<const comm::FlightRecorder> recorder)
      : ForwardingBackend(*inner), owned_(std::move(inner)), fault_(fault), recorder_(std::move(recorder)) {}

 private:
  Work start(comm::Kind kind, const Collective& call) override {
    if (kind != comm::Kind::allreduce || done_ || recorder_->step() != fault_.step) {
      return ForwardingBackend::start(kind, call);
    }
    done_ = true;
    if (fault_.kind == "drop") return {*this, dropped_};
    return ForwardingBackend::start(kind, changed(call));
  }

  Collective changed(Collective call) const {
    const std::size_t bytes = size_of(call.dtype);
    if (fault_.kind == "shape" && call.count > 0) --call.count;
    if (fault_.kind == "dtype") call.dtype = bytes == 2 ? DType::int16 : bytes == 4 ? DType::int32 : DType::int64;
    if (fault_.kind == "op") call.op = Op::max;
    if (fault_.kind == "order") ++call.bucket;
    return call;
  }

  const std::unique_ptr<CommBackend> owned_;
  const config::Experiment::Faults fault_;
  const std::shared_ptr<const comm::FlightRecorder> recorder_;
  bool done_ = false;
  Request dropped_{{"none", "dropped by [faults]"}};
};

bool is_in_allreduce(const std::string& kind) {
  return kind == "drop" || kind == "shape" || kind == "dtype" || kind == "op" || kind == "order";
}

void announce(const config::Experiment::Faults& fault) {
  log::warning("[faults]: this rank makes the fault \"" + fault.kind + "\" at step " + std::to_string(fault.step));
}

}  // namespace

std::unique_ptr<train::Observer> fault_of(const config::Experiment::Faults& fault, int rank,
                                          const std::vector<train::NamedTensor>& parameters) {
  if (fault.kind == "none" || is_in_allreduce(fault.kind) || rank != fault.rank) return nullptr;
  announce(fault);
  return std::make_unique<FaultInStep>(fault, parameters.at(0).tensor);
}

std::unique_ptr<CommBackend> with_fault(std::unique_ptr<CommBackend> backend, const config::Experiment::Faults& fault,
                                        const std::shared_ptr<const comm::FlightRecorder>& recorder) {
  if (!is_in_allreduce(fault.kind) || backend->rank() != fault.rank) return backend;
  announce(fault);
  return std::make_unique<FaultInAllreduce>(std::move(backend), fault, recorder);
}

}  // namespace ddprun::run
