#include <c10/util/StringUtil.h>

#include "ddprun/error.hpp"
#include "train/device/cuda.hpp"
#include "train/device/dp_devices.hpp"
#include "train/device/streams.hpp"
#include "train/loop/strategy.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::train {
namespace {

// The model on one device, with its part of the current batch.
struct Replica {
  explicit Replica(Model& model)
      : model(model),
        parameters(trainable_parameters(model.module())),
        state(train::state(model.module())),
        device(state.empty() ? torch::kCPU : state.front().tensor.device()) {}

  Model& model;
  std::vector<NamedTensor> parameters;
  std::vector<NamedTensor> state;
  torch::Device device;
  torch::Tensor input;
  torch::Tensor output;
};

std::vector<Replica> replicas_of(Model& main, const std::vector<Model*>& others) {
  std::vector<Replica> replicas;
  replicas.emplace_back(main);
  for (Model* other : others) replicas.emplace_back(*other);
  return replicas;
}

class DpStrategy final : public Strategy {
 public:
  DpStrategy(Model& model, const std::vector<Model*>& others)
      : Strategy(model),
        replicas_(replicas_of(model, others)),
        device_(replicas_.front().device),
        threads_(static_cast<int>(replicas_.size()), [this](int part) { make_current(at(part).device); }) {
    if (device_.is_cpu()) return;
    for (const Replica& replica : replicas_) reset_peak_memory(replica.device);
  }

  void synchronize_buffers() override {
    monitor().phase(Phase::broadcast);
    threads_.run(threads_.devices(), [this](int part) {
      if (part == 0) return;
      const torch::NoGradGuard no_grad;
      const std::vector<NamedTensor>& main = at(0).state;
      for (std::size_t i = 0; i < main.size(); ++i) at(part).state[i].tensor.copy_(main[i].tensor);
    });
    monitor().end_of(&record::StepRecord::replicate);
  }

  torch::Tensor forward(const torch::Tensor& input) override {
    monitor().end_of(&record::StepRecord::forward);
    scatter(input);
    monitor().end_of(&record::StepRecord::scatter);
    threads_.run(used_, [this](int part) {
      Replica& replica = at(part);
      set_mode(replica.model.module());
      replica.output = replica.model.forward(replica.input);
    });
    check_outputs();
    wait_for_others();
    monitor().end_of(&record::StepRecord::forward);
    gathered_ = gather_outputs();
    monitor().end_of(&record::StepRecord::gather);
    return gathered_;
  }

  void backward(const torch::Tensor& loss) override {
    loss.backward();
    const torch::Tensor gradient = gathered_.grad();
    const std::vector<torch::Tensor> gradients = gradient.defined() ? parts_of(gradient) : std::vector<torch::Tensor>{};
    threads_.run(used_, [&](int part) {
      Replica& replica = at(part);
      if (gradient.defined()) {
        const torch::Tensor& mine = gradients[static_cast<std::size_t>(part)];
        torch::autograd::backward({replica.output}, {mine.to(replica.device, true)});
      }
      replica.output.reset();
    });
    wait_for_others();
    gathered_.reset();
  }

  // Sums onto the main replica in device order, because floating-point sums depend on the order.
  void finish_gradients() override {
    const torch::NoGradGuard no_grad;
    for (int part = 1; part < threads_.devices(); ++part) add_gradients(at(part));
    monitor().end_of(&record::StepRecord::reduce);
  }

  void summarize(const record::RunTotals&, int64_t, record::Summary& summary) override {
    auto& split = summary.split;
    split.comm = split.scatter + split.replicate + split.gather + split.reduce;
    summary.devices = threads_.devices();
    if (device_.is_cpu()) return;
    for (const Replica& replica : replicas_) {
      summary.memory_by_device.push_back(peak_memory(replica.device).allocated);
    }
  }

 private:
  Replica& at(int part) { return replicas_[static_cast<std::size_t>(part)]; }

  // The main GPU waits for the work queued on the other GPUs. The host does not wait.
  void wait_for_others() {
    if (device_.is_cpu()) return;
    for (int part = 1; part < used_; ++part) {
      c10::Event reached(at(part).device.type());
      reached.record(current_stream(at(part).device));
      reached.block(current_stream(device_));
    }
  }

  // Training or evaluation mode, as the main replica.
  void set_mode(torch::nn::Module& module) const {
    const bool training = model_.module().is_training();
    if (module.is_training() != training) module.train(training);
  }

  // The sizes of torch.chunk: all equal but the last; a small batch gives fewer parts than devices.
  std::vector<torch::Tensor> parts_of(const torch::Tensor& batch) const { return batch.chunk(threads_.devices()); }

  void scatter(const torch::Tensor& input) {
    const std::vector<torch::Tensor> parts = parts_of(input);
    used_ = static_cast<int>(parts.size());
    threads_.run(used_, [&](int part) {
      const torch::Tensor& mine = parts[static_cast<std::size_t>(part)];
      at(part).input = part == 0 ? mine : mine.to(mine.options().device(at(part).device), true, true);
    });
  }

  void check_outputs() {
    for (int part = 0; part < used_; ++part) {
      const torch::Tensor& output = at(part).output;
      const int64_t samples = at(part).input.size(0);
      if (output.defined() && output.dim() > 0 && output.size(0) == samples) continue;
      throw Error(ExitCode::usage,
                  "strategy.kind = \"dp\" puts the devices' outputs together along their first dimension, the batch; "
                  "for " +
                      std::to_string(samples) + " samples the model gave " +
                      (output.defined() ? "one of shape " + c10::str(output.sizes()) : "none") +
                      "; use \"single\" or \"ddp\"");
    }
  }

  // The boundary between the autograd graph of the loss and those of the replicas.
  torch::Tensor gather_outputs() {
    std::vector<torch::Tensor> outputs;
    for (int part = 0; part < used_; ++part) outputs.push_back(at(part).output.detach().to(device_, true));
    return torch::cat(outputs).requires_grad_(at(0).output.requires_grad());
  }

  void add_gradients(Replica& replica) {
    std::vector<NamedTensor>& main = at(0).parameters;
    for (std::size_t i = 0; i < main.size(); ++i) {
      torch::Tensor& theirs = replica.parameters[i].tensor.mutable_grad();
      if (!theirs.defined()) continue;
      torch::Tensor& sum = main[i].tensor.mutable_grad();
      if (sum.defined()) {
        sum.add_(theirs.to(device_, true));
      } else {
        sum = theirs.to(theirs.options().device(device_), true, true);
      }
      theirs.reset();
    }
  }

  std::vector<Replica> replicas_;  // by device, the main one first; each gets the part of its number
  const torch::Device device_;     // of the main replica
  DeviceThreads threads_;
  int used_ = 0;  // parts of the current batch
  torch::Tensor gathered_;
};

}  // namespace

std::unique_ptr<Strategy> dp_strategy(Model& model, const std::vector<Model*>& others) {
  return std::make_unique<DpStrategy>(model, others);
}

}  // namespace ddprun::train
