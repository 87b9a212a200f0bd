#include <sstream>

#include "base/error.hpp"
#include "train/device_memory.hpp"
#include "train/device_threads.hpp"
#include "train/loop_trainer.hpp"
#include "train/parameters.hpp"

namespace ddprun::train {
namespace {

// The model on one device, with its part of the batch under way.
struct Replica {
  explicit Replica(Model& model)
      : model(model), parameters(trainable_parameters(model.module())), state(train::state(model.module())) {}

  Model& model;
  std::vector<NamedTensor> parameters;
  std::vector<NamedTensor> state;
  torch::Tensor input;
  torch::Tensor output;
};

int64_t bytes_of(const std::vector<NamedTensor>& tensors) {
  int64_t bytes = 0;
  for (const NamedTensor& item : tensors) bytes += static_cast<int64_t>(item.tensor.nbytes());
  return bytes;
}

std::string shape_of(const torch::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.sizes();
  return text.str();
}

// The devices in the order in which they get their parts of a batch: the main one first, as DataParallel's device_ids.
std::vector<int> order_of(int devices, int main_device) {
  std::vector<int> order{main_device};
  for (int device = 0; device < devices; ++device) {
    if (device != main_device) order.push_back(device);
  }
  return order;
}

class DpTrainer final : public LoopTrainer {
 public:
  DpTrainer(Parts parts, const std::vector<Model*>& others, int main_device)
      : LoopTrainer(parts),
        order_(order_of(static_cast<int>(others.size()) + 1, main_device)),
        memory_(static_cast<int>(order_.size())),
        threads_(static_cast<int>(order_.size()), [this](int part) { memory_.use(device_of(part)); }) {
    replicas_.emplace_back(parts.model);
    for (Model* other : others) replicas_.emplace_back(*other);
    for (int part = 0; part < threads_.devices(); ++part) memory_.add(device_of(part), bytes_of(at(part).state));
  }

 protected:
  void synchronize_buffers() override {
    times_ = {};
    parts_.observer.phase(launch::Phase::broadcast, step_, -1);
    const Stopwatch clock;
    threads_.run(threads_.devices(), [this](int part) {
      if (part > 0) replicate(at(part));
    });
    times_.replicate = clock.total();
  }

  torch::Tensor forward(const torch::Tensor& input) override {
    Stopwatch clock;
    scatter(input);
    times_.scatter += clock.lap();
    threads_.run(used_, [this](int part) {
      Replica& replica = at(part);
      set_mode(replica.model.module());
      replica.output = replica.model.forward(replica.input);
    });
    check_outputs();
    clock.lap();
    gathered_ = gather_outputs();
    times_.gather += clock.lap();
    return gathered_;
  }

  void backward(const torch::Tensor& loss) override {
    loss.backward();
    const torch::Tensor gradient = gathered_.grad();
    const std::vector<torch::Tensor> gradients = gradient.defined() ? parts_of(gradient) : std::vector<torch::Tensor>{};
    threads_.run(used_, [&](int part) {
      Replica& replica = at(part);
      if (gradient.defined()) torch::autograd::backward({replica.output}, {gradients[static_cast<std::size_t>(part)]});
      replica.output.reset();
    });
    gathered_.reset();
  }

  // Onto the main replica, one device after the other: sums of floating point depend on their order.
  void finish_gradients() override {
    const torch::NoGradGuard no_grad;
    const Stopwatch clock;
    for (int part = 1; part < threads_.devices(); ++part) add_gradients(at(part));
    times_.reduce = clock.total();
  }

  void complete(record::StepRecord& record) override {
    record.scatter = times_.scatter;
    record.replicate = times_.replicate;
    record.gather = times_.gather;
    record.reduce = times_.reduce;
    record.forward -= times_.scatter + times_.gather;
    record.comm += times_.scatter + times_.gather;
  }

  void complete(record::Summary& summary) override {
    auto& split = summary.split;
    split.comm = split.scatter + split.replicate + split.gather + split.reduce;
    summary.devices = threads_.devices();
    summary.memory_by_device = memory_.peaks();
  }

 private:
  struct Times {
    double scatter = 0, replicate = 0, gather = 0, reduce = 0;
  };

  int device_of(int part) const { return order_[static_cast<std::size_t>(part)]; }
  Replica& at(int part) { return replicas_[static_cast<std::size_t>(part)]; }

  void replicate(Replica& replica) {
    const torch::NoGradGuard no_grad;
    const std::vector<NamedTensor>& main = at(0).state;
    for (std::size_t i = 0; i < main.size(); ++i) replica.state[i].tensor.copy_(main[i].tensor);
  }

  // Training or evaluation, as the main replica is told.
  void set_mode(torch::nn::Module& module) const {
    const bool training = parts_.model.module().is_training();
    if (module.is_training() != training) module.train(training);
  }

  // The sizes of torch.chunk: all equal but the last, and fewer parts than devices where the batch is small.
  std::vector<torch::Tensor> parts_of(const torch::Tensor& batch) const { return batch.chunk(threads_.devices()); }

  void scatter(const torch::Tensor& input) {
    const std::vector<torch::Tensor> parts = parts_of(input);
    used_ = static_cast<int>(parts.size());
    threads_.run(used_, [&](int part) {
      const torch::Tensor& mine = parts[static_cast<std::size_t>(part)];
      at(part).input = part == 0 ? mine : mine.clone();
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
                      (output.defined() ? "one of shape " + shape_of(output) : "none") + "; use \"single\" or \"ddp\"");
    }
  }

  // Where autograd of the loss ends, and that of each replica begins.
  torch::Tensor gather_outputs() {
    std::vector<torch::Tensor> outputs;
    for (int part = 0; part < used_; ++part) outputs.push_back(at(part).output.detach());
    return torch::cat(outputs).requires_grad_(at(0).output.requires_grad());
  }

  void add_gradients(Replica& replica) {
    std::vector<NamedTensor>& main = at(0).parameters;
    for (std::size_t i = 0; i < main.size(); ++i) {
      torch::Tensor& theirs = replica.parameters[i].tensor.mutable_grad();
      if (!theirs.defined()) continue;
      torch::Tensor& sum = main[i].tensor.mutable_grad();
      if (sum.defined()) {
        sum.add_(theirs);
      } else {
        sum = theirs.clone();
      }
      theirs.reset();
    }
  }

  const std::vector<int> order_;
  DeviceMemory memory_;
  DeviceThreads threads_;
  std::vector<Replica> replicas_;  // the main one first, as all that is by part
  int used_ = 0;                   // parts of the batch under way
  torch::Tensor gathered_;
  Times times_;  // of the step under way
};

}  // namespace

std::unique_ptr<Trainer> dp_trainer(Parts parts, const std::vector<Model*>& others, int main_device) {
  return std::make_unique<DpTrainer>(parts, others, main_device);
}

}  // namespace ddprun::train
