#include <algorithm>
#include <cmath>
#include <thread>

#include "ddprun/error.hpp"
#include "comm/benchmark.hpp"
#include "ddprun/comm_backend.hpp"
#include "train/loop/heartbeat_barrier.hpp"
#include "train/loop/loop_trainer.hpp"
#include "train/loop/parameters.hpp"
#include "train/reduce/reducer.hpp"
#include "train/loop/replica.hpp"
#include "train/device/streams.hpp"

namespace ddprun::train {
namespace {

class DdpTrainer final : public LoopTrainer {
 public:
  DdpTrainer(Parts parts, CommBackend& backend, Reducer& reducer, DdpOptions options)
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
    if (options_.hash_every == 0 || step % options_.hash_every != 0) return;
    if (parts_.graph != nullptr) {
      c10::Event end = ordering_event(device_);
      end.record(current_stream(device_));
      wait_for(end);
    }
    compare_tensors(backend_, parameters_, step, options_.timeout);
  }

  void take_times(bool on) override { reducer_.take_times(on); }

  // The backend, which bounds the wait for each collective that it is given, does not see one that is replayed.
  void wait_for(const c10::Event& end) override {
    const auto deadline = std::chrono::steady_clock::now() + options_.timeout;
    while (!is_over(end)) {
      backend_.async_error();
      if (std::chrono::steady_clock::now() >= deadline) {
        backend_.abort();
        throw Error(ExitCode::peer, "the CUDA graph of a step has not ended within " +
                                        std::to_string(options_.timeout.count()) +
                                        " ms: a rank that hangs or is gone, or a step that takes longer than "
                                        "comm.timeout");
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    backend_.async_error();  // which ends a collective too, without a result
  }

  void complete(record::Summary& summary) override {
    const TransferTotals mine = reducer_.totals();
    summary.comm_bytes = static_cast<int64_t>(mine.bytes);
    if (!std::isnan(summary.split.graph)) return;  // whose allreduces nobody can time
    // Of the rank that waited least for the others: the nearest to the network's own time.
    const std::vector<double> seconds = gather(mine.seconds / static_cast<double>(steps_));
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

  void barrier() override { backend_.barrier().wait(options_.timeout); }
  void throw_if_failed() override { backend_.async_error(); }
  void alone(const std::string& doing, const std::function<void()>& work) override {
    run_with_heartbeat(backend_, options_.timeout, doing, work);
  }
  int rank() const override { return backend_.rank(); }
  int world() const override { return backend_.size(); }
  const comm::Execution* served() const override { return &reducer_.execution(); }

 private:
  // What CUDA says of an event is often but what became of an aborted collective.
  bool is_over(const c10::Event& event) {
    try {
      return event.query();
    } catch (const c10::Error&) {
      backend_.async_error();
      throw;
    }
  }

  std::vector<double> gather_all(const std::vector<double>& mine) {
    std::vector<double> all(mine.size() * static_cast<std::size_t>(backend_.size()));
    backend_.allgather({.send = mine.data(), .recv = all.data(), .count = mine.size(), .dtype = DType::float64})
        .wait(options_.timeout);
    return all;
  }

  CommBackend& backend_;
  Reducer& reducer_;
  const DdpOptions options_;
  std::vector<NamedTensor> parameters_;
  const std::vector<NamedTensor> buffers_;
  const std::shared_ptr<GradientHooks> hooks_;
  int64_t steps_ = 0;  // of this run
};

}  // namespace

std::unique_ptr<Trainer> ddp_trainer(Parts parts, CommBackend& backend, Reducer& reducer, DdpOptions options) {
  return std::make_unique<DdpTrainer>(parts, backend, reducer, options);
}

}  // namespace ddprun::train
