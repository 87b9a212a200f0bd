#include "comm/faulty_backend.hpp"

#include <csignal>
#include <thread>
#include <utility>

#include "comm/call.hpp"

namespace ddprun::comm {
namespace {

struct Happen {
  const std::string& prefix;

  void operator()(const Delay& delay) const { std::this_thread::sleep_for(delay.time); }
  void operator()(const Fail& fail) const { throw Error(fail.code, prefix + fail.message); }
  void operator()(const Die&) const { std::raise(SIGKILL); }
};

class FaultyBackend : public CallBackend {
 public:
  FaultyBackend(std::unique_ptr<CommBackend> inner, std::vector<Fault> faults)
      : inner_(std::move(inner)), faults_(std::move(faults)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  const std::string& name() const override { return inner_->name(); }
  const Capabilities& capabilities() const override { return inner_->capabilities(); }
  std::shared_ptr<void> allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  void abort() noexcept override { inner_->abort(); }

 protected:
  RequestPtr start(const Call& call) override {
    for (const Fault& fault : faults_) {
      if (fault.collective == call.sequence) std::visit(Happen{prefix(call)}, fault.what);
    }
    return forward(*inner_, call);
  }

 private:
  std::unique_ptr<CommBackend> inner_;
  std::vector<Fault> faults_;
};

}  // namespace

std::unique_ptr<CommBackend> faulty(std::unique_ptr<CommBackend> inner, std::vector<Fault> faults) {
  return std::make_unique<FaultyBackend>(std::move(inner), std::move(faults));
}

}  // namespace ddprun::comm
