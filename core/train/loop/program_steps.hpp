// ProgramSteps: the steps of a training whose loop is the program's own, of which only backward is seen.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "record/recorder.hpp"
#include "train/loop/parity.hpp"
#include "train/loop/step_timer.hpp"

namespace ddprun::train {

// A step goes from the end of the communication of a backward to that of the next. It is written when the next backward
// begins, because the weights that the optimizer makes belong to it. Single-threaded. Writing throws Error(failure).
class ProgramSteps {
 public:
  // ranks: with a backend. parity_steps: as ParityLog; 0: none.
  ProgramSteps(const std::string& run_dir, int64_t parity_steps, const comm::Group& ranks,
               const std::vector<NamedTensor>& parameters)
      : ranks_(ranks), parameters_(parameters), recorder_(run_dir, ranks.rank()) {
    if (parity_steps > 0) parity_.emplace(run_dir, ranks.rank(), parameters, parity_steps);
    for (double Step::*part : {&Step::data, &Step::forward, &Step::optimizer}) empty_.*part = record::kAbsent;
    // The host only queues the work of a GPU.
    if (!parameters.front().tensor.is_cpu()) empty_.backward = empty_.comm = record::kAbsent;
    step_ = totals_.sums = empty_;
  }

  // A backward begins; its last gradient is there; the averages of all ranks are there, if this backward ends a step.
  void begin_backward() {
    lap(nullptr);
    write();
  }
  void end_gradients() { lap(&Step::backward); }
  void end_step() {
    lap(&Step::comm);
    done_ = std::exchange(step_, empty_);
    step_.step = done_->step + 1;
    if (parity_) parity_->before_optimizer_step(done_->step);
    watch_ = {};
  }

  // Of the last step that has ended.
  void log(double loss, int64_t samples) {
    if (!done_) return;
    done_->loss = loss;
    done_->samples = samples;
    done_->complete();
  }

  // Writes the last step, config.toml and summary.json.
  void end() {
    write();
    record::Summary seen = totals_.summary(step_.step - 1, record::kAbsent);
    seen.split.comm = totals_.sums.comm / static_cast<double>(seen.steps);
    seen.world = ranks_.size();
    seen.strategy = ranks_.size() > 1 ? "ddp" : "single";
    seen.backend = ranks_.backend().name();
    seen.comm_bytes = 0;
    for (const NamedTensor& parameter : parameters_) seen.comm_bytes += static_cast<int64_t>(parameter.tensor.nbytes());
    const auto is_half = [](const NamedTensor& parameter) { return parameter.tensor.element_size() < 4; };
    write_program(recorder_, seen, std::max<int64_t>(1, totals_.sums.samples / std::max<int64_t>(1, seen.steps)),
                  torch::get_num_threads(), std::any_of(parameters_.begin(), parameters_.end(), is_half));
  }

 private:
  using Step = record::StepRecord;

  // The time since the last lap belongs to this part; null: to the rest of the step.
  void lap(double Step::*part) {
    const double seconds = watch_.lap();
    if (part != nullptr) step_.*part += seconds;
    step_.total += seconds;
  }

  void write() {
    if (!done_) return;
    if (parity_) parity_->after_optimizer_step(done_->step);
    recorder_.step(*done_);
    totals_.add(*done_);
    totals_.seconds += done_->total;
    done_.reset();
    watch_ = {};  // the time for that is in no step
  }

  const comm::Group ranks_;
  const std::vector<NamedTensor> parameters_;
  record::Recorder recorder_;
  std::optional<ParityLog> parity_;
  record::RunTotals totals_;
  Step empty_, step_;
  std::optional<Step> done_;  // that is not written yet
  Stopwatch watch_;
};

}  // namespace ddprun::train
