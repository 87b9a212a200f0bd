#include <algorithm>
#include <cmath>

#include "comm/benchmark.hpp"
#include "train/device/streams.hpp"
#include "train/loop/parameters.hpp"
#include "train/loop/rank_group.hpp"
#include "train/loop/strategy.hpp"
#include "train/reduce/bucketed_reducer.hpp"
#include "train/reduce/gradient_hooks.hpp"

namespace ddprun::train {
namespace {

class DdpStrategy final : public Strategy {
 public:
  DdpStrategy(Model& model, const RankGroup& ranks, BucketedReducer& reducer, Reducer& gradients, DdpOptions options)
      : Strategy(model),
        ranks_(ranks),
        backend_(ranks.backend()),
        timeout_(ranks.timeout()),
        reducer_(reducer),
        gradients_(gradients),
        options_(options),
        parameters_(trainable_parameters(model.module())),
        buffers_(buffers(model.module())),
        hooks_(gradients, parameters_) {
    reducer_.set_on_wait([this](int bucket) { monitor().phase(Phase::allreduce, bucket); });
  }

  void prepare() override { broadcast_tensors(backend_, state(model_.module()), timeout_); }

  void synchronize_buffers() override {
    if (!options_.sync_buffers || buffers_.empty()) return;
    monitor().phase(Phase::broadcast);
    broadcast_tensors(backend_, buffers_, timeout_);
  }

  void begin_micro_batch(bool last) override { hooks_.hold(!last); }

  void finish_gradients() override {
    hooks_.add_held();
    gradients_.finalize();
  }

  void skip_backward() override {
    for (std::size_t index = 0; index < parameters_.size(); ++index) {
      torch::Tensor& parameter = parameters_[index].tensor;
      parameter.mutable_grad() = torch::zeros_like(parameter);
      gradients_.add(index);
    }
  }

  void after_step(int64_t step) override {
    if (options_.hash_every == 0 || step % options_.hash_every != 0) return;
    if (options_.replays) {
      const torch::Device device = parameters_.front().tensor.device();
      c10::Event end = ordering_event(device);
      end.record(current_stream(device));
      ranks_.wait_for_replay(end);
    }
    compare_tensors(backend_, parameters_, step, timeout_);
  }

  void set_timing(bool on) override { reducer_.set_timing(on); }

  void summarize(const RunTotals& totals, int64_t steps, record::Summary& summary) override {
    summary.split.comm = totals.sums.comm / static_cast<double>(steps);
    const comm::Execution executed = reducer_.execution();
    summary.algorithm = executed.algorithm;
    summary.transport = executed.transport;
    const TransferTotals mine = reducer_.totals();
    summary.comm_bytes = static_cast<int64_t>(mine.bytes);
    if (!std::isnan(summary.split.graph)) return;  // the allreduces of replayed steps are not timed
    // Of the rank that waited least for the others: closest to the network's own time.
    const std::vector<double> seconds = ranks_.gather(mine.seconds / static_cast<double>(steps));
    summary.comm_time = *std::min_element(seconds.begin(), seconds.end());
    if (backend_.size() == 1) return;
    const double algorithm_bandwidth = static_cast<double>(mine.bytes) / summary.comm_time;
    summary.comm_busbw = algorithm_bandwidth * comm::bus_factor(comm::Kind::allreduce, backend_.size());
  }

 private:
  const RankGroup& ranks_;
  CommBackend& backend_;
  const std::chrono::milliseconds timeout_;
  BucketedReducer& reducer_;
  Reducer& gradients_;
  const DdpOptions options_;
  std::vector<NamedTensor> parameters_;
  const std::vector<NamedTensor> buffers_;
  GradientHooks hooks_;
};

}  // namespace

std::unique_ptr<Strategy> ddp_strategy(Model& model, const RankGroup& ranks, BucketedReducer& reducer,
                                       Reducer& gradients, DdpOptions options) {
  return std::make_unique<DdpStrategy>(model, ranks, reducer, gradients, options);
}

}  // namespace ddprun::train
