#include "support/torch_test.hpp"

#include <atomic>
#include <cmath>
#include <set>

#include "ddprun/error.hpp"
#include "support/error_of.hpp"
#include "support/text.hpp"
#include "train/fit.hpp"

namespace ddprun::train {
namespace {

// y = x0 - 2 x1 with a hidden layer.
class NetModel final : public Model {
 public:
  NetModel() {
    net_->push_back("fc1", torch::nn::Linear(2, 64));
    net_->push_back("relu", torch::nn::ReLU());
    net_->push_back("fc2", torch::nn::Linear(64, 1));
  }
  torch::nn::Module& module() override { return *net_; }
  torch::Tensor forward(const torch::Tensor& input) override {
    before_forward();
    return output_of(net_->forward(input));
  }
  torch::Tensor loss(const torch::Tensor& output, const torch::Tensor& target) override {
    return torch::mse_loss(output, target);
  }
  torch::Tensor correct(const torch::Tensor&, const torch::Tensor&) override { return {}; }

  std::function<void()> before_forward = [] {};
  std::function<torch::Tensor(torch::Tensor)> output_of = [](torch::Tensor output) { return output; };

 private:
  torch::nn::Sequential net_;
};

// A fit on the given number of devices.
template <class ModelType>
struct DpFit : Fit<ModelType> {
  DpFit(int devices, int64_t samples, int64_t batch) : Fit<ModelType>(0, 1, samples, batch, Last::pad) {
    for (int device = 1; device < devices; ++device) owned.push_back(std::make_unique<ModelType>());
  }
  std::unique_ptr<Strategy> strategy() {
    std::vector<Model*> others;
    for (const auto& model : owned) others.push_back(model.get());
    return dp_strategy(*this->model, others);
  }
  record::Summary run(const Job& job) { return this->fit(job, *strategy()); }

  std::vector<std::unique_ptr<ModelType>> owned;
};

template <class ModelType>
std::vector<double> losses(const Fit<ModelType>& fit) {
  std::vector<double> values;
  for (const auto& step : fit.notes.steps) values.push_back(step.loss);
  return values;
}

// Equal except for rounding: a sum in parts rounds differently.
void check_close(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(a[i] - b[i]) <= 4e-6 * std::abs(b[i]) + 1e-8);
  }
}

TEST_CASE_TEMPLATE("one device equals strategy single, bit for bit", ModelType, LineModel, NetModel, NormModel) {
  Fit<ModelType> alone(0, 1, 50, 12, Last::pad);
  const auto expected = alone.run_single(epochs(2));
  DpFit<ModelType> fit(1, 50, 12);
  const auto summary = fit.run(epochs(2));
  CHECK(losses(fit) == losses(alone));
  CHECK(torch::equal(fit.weights(), alone.weights()));
  CHECK(summary.test_loss == expected.test_loss);
}

TEST_CASE_TEMPLATE("two, three and four devices have the losses of strategy single", ModelType, LineModel, NetModel) {
  Fit<ModelType> alone(0, 1, 50, 12, Last::pad);
  const auto expected = alone.run_single(epochs(3));
  for (const int devices : {2, 3, 4}) {
    CAPTURE(devices);
    DpFit<ModelType> fit(devices, 50, 12);
    const auto summary = fit.run(epochs(3));
    check_close(losses(fit), losses(alone));
    check_close({summary.test_loss, summary.train_loss}, {expected.test_loss, expected.train_loss});
    CHECK(torch::allclose(fit.weights(), alone.weights(), 1e-5, 1e-6));
  }
}

TEST_CASE("a batch smaller than the devices uses fewer of them") {
  Fit<NetModel> alone(0, 1, 11, 3, Last::pad);  // the last batch has two
  alone.run_single(epochs(2));
  DpFit<NetModel> fit(8, 11, 3);
  std::atomic<int> forwards{0};
  for (const auto& model : fit.owned) model->before_forward = [&] { ++forwards; };
  fit.run({2, std::nullopt, false, {0}});
  check_close(losses(fit), losses(alone));
  CHECK(torch::allclose(fit.weights(), alone.weights(), 1e-5, 1e-6));
  CHECK(forwards == 2 * (3 * 2 + 1));
}

TEST_CASE("the parts of a batch are those of torch.chunk, the first the main device's") {
  DpFit<NetModel> fit(3, 7, 7);
  std::vector<int64_t> sizes(3);
  const auto note = [&sizes](std::size_t part) {
    return [&sizes, part](torch::Tensor output) {
      sizes[part] = output.size(0);
      return output;
    };
  };
  fit.model->output_of = note(0);
  fit.owned[0]->output_of = note(1);
  fit.owned[1]->output_of = note(2);
  fit.run({std::nullopt, 1, false, {0}});
  CHECK(sizes == std::vector<int64_t>{3, 3, 1});
}

torch::Tensor running_mean(Model& model) {
  return model.module().named_buffers()["norm.running_mean"].clone();
}

TEST_CASE("with BatchNorm each device has its own statistics, and the main device's are kept") {
  Fit<NormModel> sizes(0, 1, 20, 10, Last::pad);
  sizes.loader->start(0);
  TensorBatch batch;
  std::vector<torch::Tensor> means;  // of each device's part: step 1 on the main one, step 1 on the other, step 2 ...
  while (sizes.loader->next(batch)) {
    for (const torch::Tensor& part : batch.input.chunk(2)) means.push_back(part.mean(0));
  }
  REQUIRE(means.size() == 4);

  DpFit<NormModel> fit(2, 20, 10);
  fit.run({std::nullopt, 2, false, {0}});
  const torch::Tensor main_after_1 = 0.1 * means[0];
  CHECK(torch::allclose(running_mean(*fit.model), 0.9 * main_after_1 + 0.1 * means[2], 1e-4, 1e-6));
  // The other device began step 2 with the main device's statistics; its updates are discarded at the next step.
  CHECK(torch::allclose(running_mean(*fit.owned[0]), 0.9 * main_after_1 + 0.1 * means[3], 1e-4, 1e-6));

  Fit<NormModel> alone(0, 1, 20, 10, Last::pad);
  alone.run_single({std::nullopt, 2, false, {0}});
  CHECK_FALSE(torch::allclose(running_mean(*alone.model), running_mean(*fit.model), 1e-3, 1e-4));
  CHECK(std::abs(alone.notes.steps[0].loss - fit.notes.steps[0].loss) > 1e-4);
}

TEST_CASE("every device evaluates the main device's model, statistics included") {
  DpFit<NormModel> fit(3, 20, 10);
  const auto summary = fit.run(epochs(2));
  const auto expected = fit.evaluate(*single_strategy(*fit.model));
  check_close({summary.test_loss}, {expected.loss});
  CHECK(fit.model->module().is_training());
}

TEST_CASE("two runs are equal bit for bit") {
  const auto run = [] {
    DpFit<NetModel> fit(4, 64, 32);
    fit.run(epochs(3));
    return fit.weights();
  };
  CHECK(torch::equal(run(), run()));
}

TEST_CASE("accumulated micro-batches give the gradients of the whole batch") {
  Fit<NetModel> alone(0, 1, 48, 12, Last::pad);
  alone.run_single(epochs(2));
  DpFit<NetModel> fit(2, 48, 12);
  fit.step.accumulate = 4;
  fit.run(epochs(2));
  check_close(losses(fit), losses(alone));
  CHECK(torch::allclose(fit.weights(), alone.weights(), 1e-5, 1e-6));
}

TEST_CASE("half precision reaches every device") {
  std::set<torch::ScalarType> types;  // of the second device's outputs
  const auto run = [&](Amp amp) {
    DpFit<NetModel> fit(2, 48, 12);
    fit.owned[0]->output_of = [&](torch::Tensor output) {
      types.insert(output.scalar_type());
      return output;
    };
    fit.step.amp = amp;
    fit.run({2, std::nullopt, false, {0}});
    return losses(fit);
  };
  const auto full = run(Amp::off);
  CHECK((types == std::set{torch::kFloat}));  // doctest cannot print these types
  types.clear();
  const auto half = run(Amp::bf16);
  CHECK((types == std::set{torch::kBFloat16}));
  CHECK(run(Amp::bf16) == half);
  REQUIRE(half.size() == full.size());
  for (std::size_t i = 0; i < half.size(); ++i) CHECK(std::abs(half[i] - full[i]) < 0.02 * full[i] + 0.01);
}

TEST_CASE("a replica's exception ends training when all devices have ended") {
  DpFit<NetModel> fit(4, 32, 16);
  std::atomic<int> forwards{0};
  const auto count = [&] { ++forwards; };
  fit.model->before_forward = count;
  for (const auto& model : fit.owned) model->before_forward = count;
  fit.owned[1]->before_forward = [&] {
    if (++forwards > 4) throw std::length_error("the third device is full");
  };
  CHECK_THROWS_WITH_AS(fit.run(epochs(2)), "the third device is full", std::length_error);
  CHECK(forwards == 8);
  CHECK(fit.notes.steps.size() == 1);
}

TEST_CASE("an output without the batch as first dimension is refused") {
  const auto output_is = [](std::function<torch::Tensor(torch::Tensor)> output_of) {
    DpFit<NetModel> fit(2, 12, 6);
    fit.model->output_of = fit.owned[0]->output_of = std::move(output_of);
    return testing::error_of([&] { fit.run(epochs(1)); });
  };
  const std::string scalar = output_is([](const torch::Tensor& output) { return output.mean(); });
  CHECK(testing::contains(scalar, "2: strategy.kind = \"dp\" puts the devices' outputs together"));
  CHECK(testing::contains(scalar, "for 3 samples the model gave one of shape []; use \"single\" or \"ddp\""));
  CHECK(testing::contains(output_is([](const torch::Tensor& output) { return output.t(); }), "of shape [1, 3]"));
  CHECK(testing::contains(output_is([](const torch::Tensor&) { return torch::Tensor(); }), "the model gave none"));
}

TEST_CASE("steps and summary report scatter, replicate, gather and reduce, the parts of communication") {
  DpFit<NetModel> fit(2, 24, 12);
  const auto summary = fit.run(epochs(2));
  for (const auto& step : fit.notes.steps) {
    for (const double part : {step.scatter, step.replicate, step.gather, step.reduce}) CHECK(part > 0);
    CHECK(step.scatter + step.replicate + step.gather + step.reduce <= step.comm);
    CHECK(step.data + step.forward + step.backward + step.comm + step.optimizer <= step.total);
  }
  const auto& split = summary.split;
  CHECK(split.comm == split.scatter + split.replicate + split.gather + split.reduce);
  CHECK(split.replicate > 0);
  CHECK(summary.devices == 2);
  CHECK(summary.world == 1);
  CHECK(summary.backend.empty());
}

TEST_CASE("strategy single reports nothing about devices") {
  Fit<NetModel> alone(0, 1, 24, 12, Last::pad);
  const auto summary = alone.run_single(epochs(1));
  CHECK(std::isnan(alone.notes.steps[0].scatter));
  CHECK(std::isnan(summary.split.scatter));
  CHECK(std::isnan(summary.split.comm));
  CHECK(summary.devices < 0);
  CHECK(summary.memory_by_device.empty());
}

}  // namespace
}  // namespace ddprun::train
