// The order of a step, an epoch and a fit, which all strategies share. What differs between them is virtual.
// On a GPU a step is issued, and told when the next one has been issued too, so that the GPU never waits for the host;
// all are told before the epoch ends. On a CPU a step is told when it is done.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/call.hpp"
#include "train/loop/fault_meter.hpp"
#include "train/optim/fused.hpp"
#include "train/optim/grad_scaler.hpp"
#include "train/loop/issued_step.hpp"
#include "train/loop/position.hpp"
#include "train/loop/run_totals.hpp"
#include "train/loop/speed_meter.hpp"
#include "train/device/step_graph.hpp"
#include "train/loop/step_timer.hpp"
#include "train/loop/stopwatch.hpp"
#include "train/loop/trainer.hpp"

namespace ddprun::train {

class LoopTrainer : public Trainer {
 public:
  explicit LoopTrainer(Parts parts);
  record::Summary fit() final;
  Evaluation evaluate() final;

 protected:
  // Once, before the first step.
  virtual void prepare() {}
  // Before each forward of training, and before an evaluation: the model's buffers are to be equal on all ranks.
  virtual void synchronize_buffers() {}
  // After each backward: afterwards every gradient is the one that the optimizer is to use.
  virtual void finish_gradients() {}
  // The model's output for a batch, in training and in evaluation alike.
  virtual torch::Tensor forward(const torch::Tensor& input) { return parts_.model.forward(input); }
  // From the loss of that output to the gradients of all parameters.
  virtual void backward(const torch::Tensor& loss) { loss.backward(); }
  // Before each forward and backward of a step, of which there are several under accumulation. Only after the last are
  // gradients complete; before it they are summed on this rank.
  virtual void begin_micro_batch(bool last) { (void)last; }
  // In place of forward and backward, in a step where this rank has no samples.
  virtual void skip_backward() {}
  // After each optimizer step.
  virtual void after_step(int64_t step) { (void)step; }
  // Off while a step is recorded into a CUDA graph, whose events tell no times. Between two steps.
  virtual void take_times(bool on) { (void)on; }
  // Waits on the host for the end of a step that was replayed, for as long as that may take. Where nothing can keep it
  // from ending, it is waited for anyway.
  virtual void wait_for(const c10::Event& end) { (void)end; }
  // What only the strategy knows of a step that is done, and of the whole run.
  virtual void complete(record::StepRecord& record) { (void)record; }
  virtual void complete(record::Summary& summary) { (void)summary; }

  // Over the ranks: the sums, element by element; every rank's value; everyone here.
  virtual std::vector<double> sum(std::vector<double> values) { return values; }
  virtual std::vector<double> gather(double value) { return {value}; }
  virtual void barrier() {}
  // Throws where the group has failed, and this rank may hold what an aborted collective left. Asks no other rank.
  virtual void throw_if_failed() {}
  // Work that this rank does by itself, or an empty function; the others wait until it is done, for as long as it
  // takes. In words: "rank 1 has been <doing>".
  virtual void alone(const std::string& doing, const std::function<void()>& work) {
    (void)doing;
    if (work) work();
  }
  virtual int rank() const { return 0; }
  virtual int world() const { return 1; }
  // What carried out the gradients' allreduce; null where there is none.
  virtual const comm::Execution* served() const { return nullptr; }

  // A part of the step that only the strategy tells apart ends here; nothing outside a step.
  void end_of(double record::StepRecord::*part);

  Parts parts_;
  int64_t step_ = 0;            // global, the one under way or done, from 1
  const torch::Device device_;  // of the model

 private:
  bool finished(int64_t epochs_done) const;
  record::EpochRecord train_epoch(int64_t epoch);
  bool next(TensorBatch& batch);
  record::EpochRecord sum_epoch();
  void judge_epoch(record::EpochRecord& record, const Stopwatch& clock);
  void keep_best(const record::EpochRecord& record);
  // The work for alone() that rank 0 does for all.
  std::function<void()> of_rank0(std::function<void()> work) const { return rank() == 0 ? std::move(work) : nullptr; }
  void restore();
  void balance(const record::StepRecord& record);
  void use_batch_weights();
  void settle(IssuedStep step);
  void settle_last();
  void tell(IssuedStep step);
  void read_late(IssuedStep& step);
  void run_step(const TensorBatch& batch, IssuedStep& step);
  double set_rate();
  void compute(const TensorBatch& batch, IssuedStep& step);
  StepResults step_of(const TensorBatch& batch, record::StepRecord& record);
  void use_graph(DeviceGraph& graph);
  void record_graph(const TensorBatch& batch);
  void replay(const TensorBatch& batch, IssuedStep& step);
  void wait_for_replay(const IssuedStep& step);
  void forward_backward(const TensorBatch& batch, record::StepRecord& record, StepResults& results);
  struct Outcome {
    torch::Tensor output, loss;
  };
  Outcome outcome_of(const TensorBatch& batch);
  void run_micro_batch(const TensorBatch& batch, double share, record::StepRecord& record, StepResults& results);
  void add_result(const torch::Tensor& loss, const torch::Tensor& correct, double share, record::StepRecord& record);
  torch::Tensor scaled(const torch::Tensor& loss, double weight) const;
  void update_weights(record::StepRecord& record, StepResults& results);
  bool unscale_gradients(record::StepRecord& record, StepResults& results);
  void keep_device_state();
  void restore_scaler();
  void commit();
  record::Summary summarize();
  int64_t complete_epochs() const { return at_.epoch + (at_.step_of_epoch >= parts_.train.steps() ? 1 : 0); }
  int64_t steps_here() const { return step_ - first_step_; }

  const bool late_;  // steps are told one step late
  StepTimer timer_{device_};
  record::StepRecord* under_way_ = nullptr;  // of the step that is being issued
  std::optional<IssuedStep> issued_;         // not told yet

  Position at_;               // all but its step, which is step_
  int64_t first_step_ = 0;    // that the run goes on from; 0 for one from its beginning
  bool interrupted_ = false;  // the observer wished to stop
  bool given_up_ = false;     // the plan's early stop
  bool stopping_ = false;     // the plan's steps are done, or one of these two
  record::EpochRecord last_epoch_;
  RunTotals totals_;
  std::optional<GradScaler> scaler_;  // under fp16
  FusedOptimizer* const fused_;       // the optimizer, where a GPU itself skips or counts its steps; else null
  std::optional<StepGraph> graph_;    // where steps are replayed
  torch::Tensor rate_;                // on the device, where a replayed step has another than the one before
  FaultMeter faults_;
  SpeedMeter speed_{parts_.plan.balance_steps};
};

}  // namespace ddprun::train
