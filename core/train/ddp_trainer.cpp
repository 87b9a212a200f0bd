#include "comm/comm_backend.hpp"
#include "train/loop_trainer.hpp"
#include "train/parameters.hpp"
#include "train/reducer.hpp"
#include "train/replica.hpp"

namespace ddprun::train {
namespace {

class DdpTrainer final : public LoopTrainer {
 public:
  DdpTrainer(Parts parts, comm::CommBackend& backend, Reducer& reducer, DdpOptions options)
      : LoopTrainer(parts),
        backend_(backend),
        reducer_(reducer),
        options_(options),
        parameters_(trainable_parameters(parts.model.module())),
        buffers_(buffers(parts.model.module())),
        hooks_(attach(reducer, parameters_)) {}

 protected:
  void prepare() override { broadcast_tensors(backend_, state(parts_.model.module()), options_.timeout); }

  void before_forward() override {
    if (options_.sync_buffers && !buffers_.empty()) broadcast_tensors(backend_, buffers_, options_.timeout);
  }

  void finish_gradients() override { reducer_.finalize(); }

  void skip_backward() override {
    for (std::size_t index = 0; index < parameters_.size(); ++index) {
      torch::Tensor& parameter = parameters_[index].tensor;
      parameter.mutable_grad() = torch::zeros_like(parameter);
      reducer_.add(index);
    }
  }

  void after_step(int64_t step) override {
    if (options_.hash_every > 0 && step % options_.hash_every == 0) {
      compare_tensors(backend_, parameters_, step, options_.timeout);
    }
  }

  std::vector<double> sum(std::vector<double> values) override {
    backend_.allreduce(values.data(), buffer_of(values), comm::Op::sum)->wait(options_.timeout);
    return values;
  }

  std::vector<double> gather(double value) override {
    std::vector<double> all(static_cast<std::size_t>(backend_.size()));
    backend_.allgather(&value, buffer_of(all))->wait(options_.timeout);
    return all;
  }

  void barrier() override { backend_.barrier()->wait(options_.timeout); }
  int rank() const override { return backend_.rank(); }
  int world() const override { return backend_.size(); }
  const comm::Served* served() const override { return &reducer_.served(); }

 private:
  static comm::Buffer buffer_of(std::vector<double>& values) {
    return {values.data(), values.size(), comm::DType::float64, comm::Memory::host, nullptr};
  }

  comm::CommBackend& backend_;
  Reducer& reducer_;
  const DdpOptions options_;
  std::vector<NamedTensor> parameters_;
  const std::vector<NamedTensor> buffers_;
  const std::shared_ptr<void> hooks_;
};

}  // namespace

std::unique_ptr<Trainer> ddp_trainer(Parts parts, comm::CommBackend& backend, Reducer& reducer, DdpOptions options) {
  return std::make_unique<DdpTrainer>(parts, backend, reducer, options);
}

}  // namespace ddprun::train
