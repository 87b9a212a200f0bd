// A whole fit of one rank on points that are computed, and what it told on the way.
#pragma once

#include <cmath>
#include <functional>

#include "data/datasets.hpp"
#include "small_models.hpp"
#include "train/reduce/reducer.hpp"
#include "train/loop/trainer.hpp"

namespace ddprun::train {

// Keeps what it is told, and can wish to stop.
struct Notes final : Observer {
  void phase(launch::Phase phase, int64_t step, int) override {
    phases.push_back(phase);
    phase_step = step;
    at_phase(phase, step);
  }
  void step(const record::StepRecord& record, int64_t, int64_t) override {
    steps.push_back(record);
    at_step();
  }
  void epoch(const record::EpochRecord& record) override { epochs.push_back(record); }
  void shares(const std::vector<int64_t>& samples) override { told_shares = samples; }
  bool stop_after(int64_t step) override { return stop_step > 0 && step >= stop_step; }
  bool at_once(int64_t step) override { return step == step_at_once; }
  std::function<void()> at_step = [] {};
  std::function<void(launch::Phase, int64_t)> at_phase = [](launch::Phase, int64_t) {};
  std::vector<launch::Phase> phases;
  int64_t phase_step = 0;  // of the last phase
  std::vector<record::StepRecord> steps;
  std::vector<record::EpochRecord> epochs;
  std::vector<int64_t> told_shares;
  int64_t stop_step = 0;
  int64_t step_at_once = 0;
};

struct Saved final : Checkpointer {
  Position restore() override { return begin; }
  void restore_together() override {}
  void save_state(const Position& position) override { positions.push_back(position); }
  void save(int64_t step, int64_t) override { steps.push_back(step); }
  void save_best(int64_t step, int64_t, double) override { best.push_back(step); }
  Position begin;
  std::vector<Position> positions;
  std::vector<int64_t> steps, best;
};

// Regression of two features, made by hand: y = x0 - 2 x1.
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

// A whole fit of one rank, from the same initial weights.
template <class ModelType>
struct Fit {
  Fit(int rank, int world, int64_t samples, int64_t batch, data::Last last, torch::Device device = torch::kCPU)
      : train_data(samples), test_data(7), rank(rank), world(world) {
    torch::manual_seed(11);
    model = std::make_unique<ModelType>();
    model->module().to(device);
    optimizer = std::make_unique<torch::optim::SGD>(model->module().parameters(), 0.05);
    loader = std::make_unique<DataLoader>(train_data, data::distributed_sampler(samples, rank, world, 5, true, last), batch,
                                  rank, world, data::LoaderOptions{1, 2}, Target{device});
    test = std::make_unique<DataLoader>(test_data, data::distributed_sampler(7, rank, world, 0, false, data::Last::exact), 2,
                                  rank, world, data::LoaderOptions{0, 2}, Target{device});
  }
  Parts parts(Plan plan) { return {*model, *optimizer, *loader, test.get(), notes, &saved, plan, step, nullptr, graph}; }
  record::Summary run_single(Plan plan) { return single_trainer(parts(plan))->fit(); }
  record::Summary run_ddp(Plan plan, CommBackend& backend, DdpOptions options = {}) {
    const auto reducer = bucketed_reducer(backend, trainable_parameters(model->module()), {});
    return ddp_trainer(parts(plan), backend, *reducer, options)->fit();
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
  std::unique_ptr<DataLoader> loader, test;
  Notes notes;
  Saved saved;
  StepOptions step;
  DeviceGraph* graph = nullptr;
};

inline Plan epochs(int64_t count) {
  return {count, std::nullopt, true, 1};
}

}  // namespace ddprun::train
