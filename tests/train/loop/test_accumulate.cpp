#include "support/torch_test.hpp"

#include "comm/joined.hpp"
#include "comm/plugin_backend.hpp"
#include "train/counting_backend.hpp"
#include "train/fit.hpp"
#include "train/reduce/bucketed_reducer.hpp"

namespace ddprun::train {
namespace {

using testing::As;
using testing::failures;
using testing::run_ranks;


// Adds `spare` to the output in all forwards but the last of a step.
class SpareModel final : public Model {
 public:
  SpareModel() {
    net_->push_back("fc", torch::nn::Linear(2, 1));
    net_->push_back("spare", torch::nn::Linear(2, 1));
  }
  torch::nn::Module& module() override { return *net_; }
  torch::Tensor forward(const torch::Tensor& input) override {
    const bool last = ++forwards_ % 2 == 0;
    torch::Tensor output = net_[0]->as<torch::nn::Linear>()->forward(input);
    if (!last) output = output + net_[1]->as<torch::nn::Linear>()->forward(input);
    return output;
  }
  torch::Tensor loss(const torch::Tensor& output, const torch::Tensor& target) override {
    return torch::mse_loss(output, target);
  }
  torch::Tensor correct(const torch::Tensor&, const torch::Tensor&) override { return {}; }

 private:
  torch::nn::Sequential net_;
  int forwards_ = 0;
};

Job steps(int64_t count) {
  return {std::nullopt, count, false, {0}};
}

TEST_CASE("a batch is split in order, into parts that differ by at most one sample") {
  TensorBatch batch;
  batch.input = torch::arange(14, torch::kFloat32).view({7, 2});
  batch.target = torch::arange(7, torch::kFloat32).view({7, 1});
  batch.size = 7;
  batch.weight = 1.4;
  const auto parts = micro_batches(batch, 3);
  REQUIRE(parts.size() == 3);
  std::vector<torch::Tensor> inputs, targets;
  double weight = 0;
  for (const TensorBatch& part : parts) {
    CHECK(part.input.size(0) == part.size);
    CHECK(part.weight == doctest::Approx(1.4 * static_cast<double>(part.size) / 7));
    inputs.push_back(part.input);
    targets.push_back(part.target);
    weight += part.weight;
  }
  CHECK(parts[0].size == 3);
  CHECK(parts[1].size == 2);
  CHECK(parts[2].size == 2);
  CHECK(torch::equal(torch::cat(inputs), batch.input));
  CHECK(torch::equal(torch::cat(targets), batch.target));
  CHECK(weight == doctest::Approx(1.4));
  CHECK(micro_batches(batch, 9).size() == 7);
  CHECK(micro_batches(batch, 1).at(0).weight == 1.4);
}

TEST_CASE("micro-batches give the weights of the whole batch, on one rank") {
  Fit<LineModel> whole(0, 1, 47, 12, Last::exact);  // the last batch of an epoch has 11 samples
  const auto summary = whole.run_single(epochs(2));
  for (const int64_t count : {2, 5, 12}) {
    CAPTURE(count);
    Fit<LineModel> cut(0, 1, 47, 12, Last::exact);
    cut.step.accumulate = count;
    const auto mine = cut.run_single(epochs(2));
    CHECK(mine.steps == summary.steps);
    CHECK(mine.train_loss == doctest::Approx(summary.train_loss).epsilon(1e-5));
    CHECK(torch::allclose(cut.weights(), whole.weights(), 1e-5, 1e-6));
    CHECK(cut.notes.steps[1].samples == 12);
    CHECK(cut.notes.steps[1].loss == doctest::Approx(whole.notes.steps[1].loss).epsilon(1e-5));
  }
}

TEST_CASE("micro-batches give the weights of the whole batch, on two ranks, with one allreduce per bucket and step") {
  Fit<LineModel> whole(0, 1, 46, 12, Last::exact);
  whole.run_single(epochs(2));
  const torch::Tensor expected = whole.weights();
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
          const auto backend = comm::join_good(rank);
          comm::CountingBackend counting(*backend);
          Fit<LineModel> fit(rank.rank(), 2, 46, 6, Last::exact);
          fit.step.accumulate = 3;
          fit.run_ddp(epochs(2), counting);
          require(torch::allclose(fit.weights(), expected, 1e-5, 1e-6), "weights");
          require(counting.allreduces == 2 * 4, "allreduces: " + std::to_string(counting.allreduces));
        })) == "");
}

TEST_CASE("a parameter that only an earlier micro-batch used is reduced with the others") {
  Fit<SpareModel> alone(0, 1, 12, 12, Last::exact);
  alone.step.accumulate = 2;
  alone.run_single(steps(1));
  Fit<SpareModel> fit(0, 1, 12, 12, Last::exact);
  fit.step.accumulate = 2;
  const torch::Tensor before = fit.weights();
  const auto backend = comm::single_process_backend();
  fit.run_ddp(steps(1), *backend);
  CHECK(torch::equal(fit.weights(), alone.weights()));
  CHECK_FALSE(torch::equal(fit.weights().slice(0, 3, 6), before.slice(0, 3, 6)));  // those of "spare"
}

}  // namespace
}  // namespace ddprun::train
