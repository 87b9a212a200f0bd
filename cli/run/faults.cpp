#include "cli/run/faults.hpp"

#include <chrono>
#include <csignal>
#include <limits>
#include <map>
#include <thread>

#include "base/log.hpp"
#include "comm/faulty_backend.hpp"
#include "ddprun/error.hpp"

namespace ddprun::run {
namespace {

// Its own function, so that a stack names it.
[[gnu::noinline]] void spin_for_ever() {
  for (volatile uint64_t turns = 0;;) turns = turns + 1;
}

class Fault final : public train::Callback {
 public:
  Fault(const config::Experiment::Faults& faults, torch::Tensor parameter)
      : kind_(faults.kind), step_(faults.step), sleep_(faults.seconds), parameter_(std::move(parameter)) {}

  void on_phase(Phase phase, int64_t step, int) override {
    if (phase != Phase::forward || step < step_) return;
    if (kind_ == "slow") return std::this_thread::sleep_for(sleep_);
    if (done_) return;
    done_ = true;
    if (kind_ == "kill") ::raise(SIGKILL);
    if (kind_ == "stop") ::raise(SIGSTOP);
    if (kind_ == "spin") spin_for_ever();
    if (kind_ == "throw") throw Error(ExitCode::failure, "faults.kind = \"throw\": the exception that it asks for");
    if (kind_ == "nan_gradient")
      parameter_.register_hook([this](const torch::Tensor& gradient) { return poison(gradient); });
  }

 private:
  // The hook's list may not change while it runs, so the hook stays.
  torch::Tensor poison(const torch::Tensor& gradient) {
    if (poisoned_) return gradient;
    poisoned_ = true;
    return torch::full_like(gradient, std::numeric_limits<double>::quiet_NaN());
  }

  const std::string kind_;
  const int64_t step_;
  const std::chrono::duration<double> sleep_;
  torch::Tensor parameter_;
  bool done_ = false, poisoned_ = false;
};

void announce(const config::Experiment::Faults& faults) {
  log::warning("[faults]: this rank makes the fault \"" + faults.kind + "\" at step " + std::to_string(faults.step));
}

}  // namespace

std::unique_ptr<train::Callback> fault_of(const config::Experiment::Faults& faults, int rank,
                                          const std::vector<train::NamedTensor>& parameters) {
  const bool in_step = faults.kind == "kill" || faults.kind == "stop" || faults.kind == "spin" ||
                       faults.kind == "throw" || faults.kind == "slow" || faults.kind == "nan_gradient";
  if (!in_step || rank != faults.rank) return nullptr;
  announce(faults);
  return std::make_unique<Fault>(faults, parameters.at(0).tensor);
}

std::unique_ptr<CommBackend> with_fault(std::unique_ptr<CommBackend> backend, const config::Experiment::Faults& faults,
                                        const std::shared_ptr<const comm::FlightRecorder>& recorder) {
  static const std::map<std::string, comm::CommFault> kinds = {
      {"delay", comm::CommFault::delay}, {"drop", comm::CommFault::drop}, {"shape", comm::CommFault::shape},
      {"dtype", comm::CommFault::dtype}, {"op", comm::CommFault::op},     {"order", comm::CommFault::order}};
  const auto kind = kinds.find(faults.kind);
  if (kind == kinds.end() || backend->rank() != faults.rank) return backend;
  announce(faults);
  return comm::faulty(std::move(backend), {kind->second, faults.step, std::chrono::duration<double>(faults.seconds)},
                      recorder);
}

}  // namespace ddprun::run
