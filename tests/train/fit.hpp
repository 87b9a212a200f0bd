// A whole fit of one rank on computed points, and what it reported.
#pragma once

#include <cmath>
#include <functional>

#include "data/datasets.hpp"
#include "train/loop/checkpointing.hpp"
#include "train/loop/policies.hpp"
#include "train/loop/training_loop.hpp"
#include "train/reduce/gradient_sync.hpp"
#include "train/small_models.hpp"

namespace ddprun::train {

// Records what a training reports.
struct Notes final : Observer {
  void on_phase(Phase phase, int64_t step, int) override {
    phases.push_back(phase);
    phase_step = step;
    at_phase(phase, step);
  }
  void on_step_end(const record::StepRecord& record, int64_t, const LoopState& state) override {
    steps.push_back(record);
    numbers = state.at.numbers;
    at_step();
  }
  void on_epoch_end(const record::EpochRecord& record, const LoopState&) override { epochs.push_back(record); }
  bool needs_sync(int64_t step) override { return step == sync_step; }
  std::function<void()> at_step = [] {};
  std::function<void(Phase, int64_t)> at_phase = [](Phase, int64_t) {};
  std::vector<Phase> phases;
  int64_t phase_step = 0;  // of the last phase
  std::vector<record::StepRecord> steps;
  std::vector<record::EpochRecord> epochs;
  std::vector<int64_t> samples_per_rank;  // as LoadBalance reported them
  std::map<std::string, double> numbers;  // Position::numbers after the last step
  int64_t sync_step = 0;
};

// Stops a training after a step.
struct StopAt final : Policy {
  Decision after_step(int64_t now) override { return {.stop = step > 0 && now >= step ? kInterrupted : std::string()}; }
  int64_t step = 0;  // 0: never
};

struct Saved final : Checkpointer {
  Position restore() override { return begin; }
  void restore_together() override {}
  void save_state(const Position& position) override {
    at_state(position.step);
    positions.push_back(position);
  }
  void gather_states(int64_t) override {}
  std::string save(int64_t step, int64_t) override {
    at_weights(step);
    steps.push_back(step);
    return "";
  }
  std::string save_best(int64_t step, int64_t, double) override {
    at_weights(step);
    best.push_back(step);
    return "";
  }
  std::function<void(int64_t step)> at_state = [](int64_t) {}, at_weights = [](int64_t) {};  // may throw
  Position begin;
  std::vector<Position> positions;
  std::vector<int64_t> steps, best;
};

// The length of a fit, and the settings of its policies.
struct Job {
  std::optional<int64_t> epochs, steps;
  bool evaluate = true;
  CheckpointRule checkpoint = {};
  std::string best = {};
  int64_t balance_steps = 0;
  EarlyStopRule early_stop = {};
};

// Regression of two features with exact values: y = x0 - 2 x1.
class Points final : public Dataset {
 public:
  explicit Points(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  const Field& input() const override { return input_; }
  const Field& target() const override { return target_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  void fetch(std::span<const int64_t> indices, int64_t, void* inputs, void* targets) const override {
    auto* x = static_cast<float*>(inputs);
    auto* y = static_cast<float*>(targets);
    for (const int64_t index : indices) {
      const float a = std::sin(static_cast<float>(index)), b = std::cos(static_cast<float>(3 * index));
      *x++ = a;
      *x++ = b;
      *y++ = index == poisoned ? std::nanf("") : a - 2 * b;
    }
  }
  int64_t poisoned = -1;

 private:
  int64_t size_;
  Field input_{{2}, ElementType::float32};
  Field target_{{1}, ElementType::float32};
  std::vector<std::string> classes_;
};

class LineModel final : public Model {
 public:
  torch::nn::Module& module() override { return *fc_; }
  torch::Tensor forward(const torch::Tensor& input) override { return fc_->forward(input); }
  torch::Tensor loss(const torch::Tensor& output, const torch::Tensor& target) override {
    return torch::mse_loss(output, target);
  }
  torch::Tensor correct(const torch::Tensor&, const torch::Tensor&) override { return {}; }

 private:
  torch::nn::Linear fc_{2, 1};
};

// A whole fit of one rank; the initial weights are always the same.
template <class ModelType>
struct Fit {
  Fit(int rank, int world, int64_t samples, int64_t batch, Last last, torch::Device device = torch::kCPU)
      : train_data(samples), test_data(7), rank(rank), world(world) {
    torch::manual_seed(11);
    model = std::make_unique<ModelType>();
    model->module().to(device);
    optimizer = std::make_unique<torch::optim::SGD>(model->module().parameters(), 0.05);
    const auto train_sampler = [=](int of) { return data::distributed_sampler(samples, of, world, 5, true, last); };
    const auto test_sampler = [=](int of) { return data::distributed_sampler(7, of, world, 0, false, Last::exact); };
    const LoadedRanks ranks{rank, world};
    loader = std::make_unique<DataLoader>(train_data, train_sampler, batch, ranks, data::LoaderOptions{1, 2},
                                          Target{device});
    test = std::make_unique<DataLoader>(test_data, test_sampler, 2, ranks, data::LoaderOptions{0, 2}, Target{device});
  }
  // Makes the trainer of such a job and passes it to `use`.
  void with_trainer(const Job& job, Strategy& strategy, comm::Group ranks, const std::function<void(Trainer&)>& use) {
    Checkpoints checkpoints(saved, job.checkpoint);
    BestWeights best(saved, job.best, job.checkpoint.may_fail);
    LoadBalance balance(job.balance_steps, [this](const auto& samples) { notes.samples_per_rank = samples; });
    EarlyStop early_stop(job.early_stop);
    std::vector<Observer*> all_observers{&notes};
    all_observers.insert(all_observers.end(), observers.begin(), observers.end());
    std::vector<Policy*> all_policies{&stop_at};
    all_policies.insert(all_policies.end(), policies.begin(), policies.end());
    if (job.balance_steps > 0) all_policies.push_back(&balance);
    if (!job.best.empty()) all_policies.push_back(&best);
    if (!job.early_stop.metric.empty()) all_policies.push_back(&early_stop);
    TrainingLoop loop({*model,
                       *optimizer,
                       strategy,
                       ranks,
                       *loader,
                       validation.get(),
                       test.get(),
                       &checkpoints,
                       all_observers,
                       all_policies,
                       {job.epochs, job.steps, job.evaluate},
                       step});
    use(loop);
  }
  record::Summary fit(const Job& job, Strategy& strategy, comm::Group ranks = {}) {
    record::Summary summary;
    with_trainer(job, strategy, ranks, [&](Trainer& trainer) { summary = trainer.fit(); });
    return summary;
  }
  Evaluation evaluate(Strategy& strategy, comm::Group ranks = {}) {
    Evaluation evaluation;
    with_trainer({1, std::nullopt}, strategy, ranks, [&](Trainer& trainer) { evaluation = trainer.evaluate(); });
    return evaluation;
  }

  record::Summary run_single(const Job& job) { return fit(job, *single_strategy(*model)); }
  record::Summary run_ddp(const Job& job, CommBackend& backend, int64_t hash_every = 0) {
    const comm::Group ranks(backend, timeout);
    GradientSync sync(tensors_of(model->module()), ranks, {reducer_options, broadcast_buffers});
    at_reducer(sync.reducer());
    return fit(job, *ddp_strategy(*model, ranks, sync, hash_every), ranks);
  }
  torch::Tensor weights() {
    std::vector<torch::Tensor> flat;
    for (const auto& parameter : model->module().parameters()) flat.push_back(parameter.detach().cpu().reshape({-1}));
    return torch::cat(flat);
  }

  Points train_data, test_data;
  int rank, world;
  std::unique_ptr<ModelType> model;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  std::unique_ptr<DataLoader> loader, validation, test;
  Notes notes;
  StopAt stop_at;
  Saved saved;
  StepOptions step;
  std::chrono::milliseconds timeout{30'000};  // of each collective
  ReducerOptions reducer_options;
  bool broadcast_buffers = true;
  std::function<void(BucketedReducer&)> at_reducer = [](BucketedReducer&) {};
  std::vector<Observer*> observers;  // in addition to `notes`
  std::vector<Policy*> policies;     // in addition to those of the job
};

inline Job epochs(int64_t count) {
  return {count, std::nullopt};
}

}  // namespace ddprun::train
