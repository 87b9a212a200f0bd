#include <algorithm>

#include "comm/call.hpp"
#include "train/loop/strategy.hpp"
#include "train/reduce/gradient_sync.hpp"
#include "train/tensor/replicas.hpp"

namespace ddprun::train {
namespace {

class DdpStrategy final : public Strategy {
 public:
  DdpStrategy(Model& model, const comm::Group& ranks, GradientSync& sync, int64_t hash_every)
      : Strategy(model), ranks_(ranks), sync_(sync), hash_every_(hash_every) {
    sync_.set_on_phase([this](Phase phase, int bucket) { monitor().phase(phase, bucket); });
  }

  void prepare() override { sync_.broadcast_state(); }
  void synchronize_buffers() override { sync_.broadcast_buffers(); }
  void begin_micro_batch(bool last) override { sync_.hooks().hold(!last); }
  void finish_gradients() override { sync_.finalize(); }
  void skip_backward() override { sync_.skip(); }

  void after_step(int64_t step) override {
    if (hash_every_ != 0 && step % hash_every_ == 0) compare_tensors(ranks_, sync_.parameters(), step);
  }

  void summarize(const record::RunTotals& totals, int64_t steps, record::Summary& summary) override {
    summary.split.comm = totals.sums.comm / static_cast<double>(steps);
    const comm::Execution executed = sync_.reducer().execution();
    summary.algorithm = executed.algorithm;
    summary.transport = executed.transport;
    const TransferTotals mine = sync_.reducer().totals();
    summary.comm_bytes = static_cast<int64_t>(mine.bytes);
    // Of the rank that waited least for the others: closest to the network's own time.
    const std::vector<double> seconds = ranks_.gather(std::vector{mine.seconds / static_cast<double>(steps)});
    summary.comm_time = *std::min_element(seconds.begin(), seconds.end());
    if (ranks_.size() == 1) return;
    const double algorithm_bandwidth = static_cast<double>(mine.bytes) / summary.comm_time;
    summary.comm_busbw = algorithm_bandwidth * comm::bus_factor(comm::Kind::allreduce, ranks_.size());
  }

 private:
  const comm::Group& ranks_;
  GradientSync& sync_;
  const int64_t hash_every_;
};

}  // namespace

std::unique_ptr<Strategy> ddp_strategy(Model& model, const comm::Group& ranks, GradientSync& sync, int64_t hash_every) {
  return std::make_unique<DdpStrategy>(model, ranks, sync, hash_every);
}

}  // namespace ddprun::train
