#include <algorithm>

#include "comm/benchmark.hpp"
#include "comm/comm_backend.hpp"
#include "train/alone.hpp"
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

  void synchronize_buffers() override {
    if (!options_.sync_buffers || buffers_.empty()) return;
    parts_.observer.phase(launch::Phase::broadcast, step_, -1);
    broadcast_tensors(backend_, buffers_, options_.timeout);
  }

  void begin_micro_batch(bool last) override { hooks_->hold(!last); }

  void finish_gradients() override {
    hooks_->add_held();
    reducer_.finalize();
  }

  void skip_backward() override {
    for (std::size_t index = 0; index < parameters_.size(); ++index) {
      torch::Tensor& parameter = parameters_[index].tensor;
      parameter.mutable_grad() = torch::zeros_like(parameter);
      reducer_.add(index);
    }
  }

  void after_step(int64_t step) override {
    ++steps_;
    if (options_.hash_every > 0 && step % options_.hash_every == 0) {
      compare_tensors(backend_, parameters_, step, options_.timeout);
    }
  }

  void complete(record::Summary& summary) override {
    // Of the rank that waited least for the others: the nearest to the network's own time.
    const TransferTotals mine = reducer_.totals();
    const std::vector<double> seconds = gather(mine.seconds / static_cast<double>(steps_));
    summary.comm_bytes = static_cast<int64_t>(mine.bytes);
    summary.comm_time = *std::min_element(seconds.begin(), seconds.end());
    if (world() == 1) return;
    const double algorithm_bandwidth = static_cast<double>(mine.bytes) / summary.comm_time;
    summary.comm_busbw = algorithm_bandwidth * comm::bus_factor(comm::Kind::allreduce, world());
  }

  // Gathered and added here, in rank order: an algorithm need not take float64.
  std::vector<double> sum(std::vector<double> values) override {
    const std::vector<double> all = gather_all(values);
    std::vector<double> sums(values.size());
    for (std::size_t i = 0; i < all.size(); ++i) sums[i % values.size()] += all[i];
    return sums;
  }

  std::vector<double> gather(double value) override { return gather_all({value}); }

  void barrier() override { backend_.barrier()->wait(options_.timeout); }
  void alone(const std::string& doing, const std::function<void()>& work) override {
    do_alone(backend_, options_.timeout, doing, work);
  }
  int rank() const override { return backend_.rank(); }
  int world() const override { return backend_.size(); }
  const comm::Served* served() const override { return &reducer_.served(); }

 private:
  std::vector<double> gather_all(const std::vector<double>& mine) {
    std::vector<double> all(mine.size() * static_cast<std::size_t>(backend_.size()));
    const comm::Buffer buffer{all.data(), all.size(), comm::DType::float64, comm::Memory::host, nullptr};
    backend_.allgather(mine.data(), buffer)->wait(options_.timeout);
    return all;
  }

  comm::CommBackend& backend_;
  Reducer& reducer_;
  const DdpOptions options_;
  std::vector<NamedTensor> parameters_;
  const std::vector<NamedTensor> buffers_;
  const std::shared_ptr<GradientHooks> hooks_;
  int64_t steps_ = 0;  // of this run
};

}  // namespace

std::unique_ptr<Trainer> ddp_trainer(Parts parts, comm::CommBackend& backend, Reducer& reducer, DdpOptions options) {
  return std::make_unique<DdpTrainer>(parts, backend, reducer, options);
}

}  // namespace ddprun::train
