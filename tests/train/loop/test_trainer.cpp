#include "support/torch_test.hpp"

#include <cmath>
#include <set>

#include "comm/joined.hpp"
#include "data/sampler.hpp"
#include "support/error_of.hpp"
#include "train/fit.hpp"
#include "train/reduce/bucketed_reducer.hpp"

namespace ddprun::train {
namespace {

using testing::As;
using testing::failures;
using testing::run_ranks;


TEST_CASE("two, three and four ranks with batch B/N match one rank with batch B") {
  Fit<LineModel> alone(0, 1, 48, 12, Last::pad);
  const auto summary = alone.run_single(epochs(3));
  const torch::Tensor expected = alone.weights();
  for (const int world : {2, 3, 4}) {
    CAPTURE(world);
    CHECK(failures(run_ranks(world, As::processes, kDeadline, [&](testing::Rank& rank) {
            const auto backend = comm::join_good(rank);
            Fit<LineModel> fit(rank.rank(), world, 48, 12 / world, Last::pad);
            const auto mine = fit.run_ddp(epochs(3), *backend);
            require(torch::allclose(fit.weights(), expected, 1e-5, 1e-6), "weights");
            require(std::abs(mine.train_loss - summary.train_loss) < 1e-5, "training loss");
            require(std::abs(mine.test_loss - summary.test_loss) < 1e-5, "test loss");
          })) == "");
  }
}

TEST_CASE("exact, with a data set that is not divisible by the ranks, matches one rank too") {
  Fit<LineModel> alone(0, 1, 47, 12, Last::exact);
  alone.run_single(epochs(2));
  const torch::Tensor expected = alone.weights();
  for (const int world : {2, 3, 4}) {
    CAPTURE(world);
    CHECK(failures(run_ranks(world, As::processes, kDeadline, [&](testing::Rank& rank) {
            const auto backend = comm::join_good(rank);
            Fit<LineModel> fit(rank.rank(), world, 47, 12 / world, Last::exact);
            fit.run_ddp(epochs(2), *backend);
            require(torch::allclose(fit.weights(), expected, 1e-5, 1e-6), "weights");
          })) == "");
  }
}

TEST_CASE("a step in which a rank has no samples matches one rank too") {
  Fit<LineModel> alone(0, 1, 5, 2, Last::exact);
  alone.run_single(epochs(2));
  const torch::Tensor expected = alone.weights();
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
          const auto backend = comm::join_good(rank);
          Fit<LineModel> fit(rank.rank(), 2, 5, 1, Last::exact);  // 3 samples and 2
          fit.run_ddp(epochs(2), *backend);
          require(fit.notes.steps.size() == 6, "steps");
          require(torch::allclose(fit.weights(), expected, 1e-5, 1e-6), "weights");
        })) == "");
}

TEST_CASE("replicas that begin different become rank 0's, and stay bitwise equal") {
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
          const auto backend = comm::join_good(rank);
          Fit<LineModel> fit(rank.rank(), 2, 20, 5, Last::pad);
          if (rank.rank() == 1) {
            const torch::NoGradGuard no_grad;
            for (auto& parameter : fit.model->module().parameters()) parameter.add_(1);
          }
          fit.run_ddp(epochs(2), *backend, /*hash_every=*/1);  // throws if they differ
        })) == "");
}

TEST_CASE("BatchNorm's statistics are rank 0's on every rank before each step, as with DistributedDataParallel") {
  for (const bool sync : {true, false}) {
    CAPTURE(sync);
    CHECK(
        failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
          const auto backend = comm::join_good(rank);
          Fit<NormModel> fit(rank.rank(), 2, 20, 5, Last::pad);
          fit.broadcast_buffers = sync;
          fit.run_ddp({std::nullopt, 2, false, {0}}, *backend);
          // After step 2 each rank has rank 0's (or its own) statistics of step 1, updated with its own batch of step
          // 2.
          std::vector<double> all(2);
          double mine = fit.model->module().named_buffers()["norm.running_mean"][0].template item<double>();
          backend->allgather({.send = &mine, .recv = all.data(), .count = 1, .dtype = DType::float64}).wait(kDeadline);
          std::vector<int64_t> counts(2);
          int64_t count = fit.model->module().named_buffers()["norm.num_batches_tracked"].template item<int64_t>();
          backend->allgather({.send = &count, .recv = counts.data(), .count = 1, .dtype = DType::int64})
              .wait(kDeadline);
          require(counts[0] == 2 && counts[1] == 2, "batches tracked");
          Fit<NormModel> reference(rank.rank(), 2, 20, 5, Last::pad);
          reference.loader->start(0);
          TensorBatch batch;
          double expected = 0;
          Fit<NormModel> rank0(0, 2, 20, 5, Last::pad);
          rank0.loader->start(0);
          TensorBatch first;
          rank0.loader->next(first);
          reference.loader->next(batch);
          const auto mean = [](const TensorBatch& of) { return of.input.select(1, 0).mean().item<double>(); };
          expected = 0.1 * mean(sync ? first : batch);
          reference.loader->next(batch);
          expected = 0.9 * expected + 0.1 * mean(batch);
          require(std::abs(mine - expected) < 1e-6, "running mean");
        })) == "");
  }
}

TEST_CASE("the evaluated model is rank 0's, including statistics") {
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
          const auto backend = comm::join_good(rank);
          Fit<NormModel> fit(rank.rank(), 2, 20, 5, Last::pad);
          const auto summary = fit.run_ddp(epochs(1), *backend);
          if (rank.rank() != 0) return;
          Fit<NormModel> alone(0, 1, 20, 5, Last::pad);
          fit.test = std::move(alone.test);
          require(std::abs(fit.evaluate(*single_strategy(*fit.model)).loss - summary.test_loss) < 1e-6, "test loss");
        })) == "");
}

TEST_CASE("a fit reports its phases, steps and epochs, and commits when due") {
  Fit<LineModel> fit(0, 1, 10, 4, Last::pad);
  const auto summary = fit.run_single(epochs(2));
  CHECK(summary.steps == 6);
  CHECK(summary.epochs == 2);
  CHECK(summary.world == 1);
  CHECK(fit.saved.steps == std::vector<int64_t>{3, 6});
  REQUIRE(fit.notes.steps.size() == 6);
  CHECK(fit.notes.steps[2].samples == 2);
  CHECK(fit.notes.steps[5].epoch == 2);
  REQUIRE(fit.notes.epochs.size() == 2);
  CHECK(fit.notes.epochs[1].test_loss < fit.notes.epochs[0].test_loss);
  CHECK(std::isnan(fit.notes.epochs[0].test_accuracy));
  const std::vector<Phase> step{Phase::data, Phase::forward, Phase::backward, Phase::optimizer};
  CHECK((std::vector<Phase>(fit.notes.phases.begin() + 1, fit.notes.phases.begin() + 5) ==
         step));  // doctest cannot print phases
}

TEST_CASE("a plan of steps ends in the middle of an epoch, with a commit") {
  Fit<LineModel> fit(0, 1, 10, 4, Last::pad);
  const auto summary = fit.run_single({std::nullopt, 4, true, {0}});
  CHECK(summary.steps == 4);
  CHECK(fit.saved.steps == std::vector<int64_t>{4});
  CHECK(summary.test_loss > 0);
}

TEST_CASE("a request to stop ends the fit after that step, with a commit") {
  Fit<LineModel> fit(0, 1, 100, 4, Last::pad);
  fit.stop_at.step = 5;
  CHECK(fit.run_single(epochs(3)).steps == 5);
  CHECK(fit.saved.steps == std::vector<int64_t>{5});
}

TEST_CASE("a loss that is not finite ends training before the weights change") {
  Fit<LineModel> fit(0, 1, 10, 10, Last::pad);
  fit.train_data.poisoned = 3;
  const torch::Tensor before = fit.weights().clone();
  const std::string error = testing::error_of([&] { fit.run_single(epochs(1)); });
  CHECK(error.find("1: the loss is nan; ") == 0);
  CHECK(torch::equal(fit.weights(), before));
  CHECK(fit.saved.steps.empty());
}

// The points, and the epochs in which they were fetched.
struct NotedPoints final : Dataset {
  int64_t size() const override { return points.size(); }
  const Field& input() const override { return points.input(); }
  const Field& target() const override { return points.target(); }
  const std::vector<std::string>& classes() const override { return points.classes(); }
  void fetch(std::span<const int64_t> indices, int64_t epoch, void* inputs, void* targets) const override {
    epochs.push_back(epoch);
    points.fetch(indices, epoch, inputs, targets);
  }
  const Points points{10};
  mutable std::vector<int64_t> epochs;
};

TEST_CASE("the validation set is evaluated after each epoch, and ends a training and chooses the best weights") {
  const NotedPoints points;
  const std::vector<int64_t> subset = {8, 1, 5};
  Fit<LineModel> fit(0, 1, 10, 4, Last::pad);
  const auto sampler = [&](int) {
    return data::subset_sampler(data::distributed_sampler(3, 0, 1, 0, false, Last::exact), subset);
  };
  fit.validation = std::make_unique<DataLoader>(points, sampler, 2, LoadedRanks(), data::LoaderOptions{0, 2});
  Job job = epochs(9);
  job.best = "validation.loss";
  job.early_stop = {"validation.loss", 2, 1e9};  // nothing improves on the first
  const auto summary = fit.run_single(job);
  CHECK(summary.stopped == "early_stop");
  REQUIRE(fit.notes.epochs.size() == 3);
  CHECK(fit.notes.epochs[1].validation_loss < fit.notes.epochs[0].validation_loss);
  CHECK(fit.notes.epochs[2].validation_loss == summary.validation_loss);
  CHECK(fit.notes.epochs[2].test_loss == summary.test_loss);
  CHECK(std::isnan(summary.validation_accuracy));
  CHECK(fit.saved.best == std::vector<int64_t>{3, 6, 9});
  CHECK(std::set<int64_t>(points.epochs.begin(), points.epochs.end()) == std::set<int64_t>{kPlainEpoch});
  fit.test = std::make_unique<DataLoader>(points, sampler, 2, LoadedRanks(), data::LoaderOptions{0, 2});
  const Evaluation expected = fit.evaluate(*single_strategy(*fit.model));
  CHECK(expected.samples == 3);
  CHECK(summary.validation_loss == expected.loss);
  CHECK(summary.validation_loss != summary.test_loss);
}

TEST_CASE("evaluation counts every test sample once, for any number of ranks") {
  Fit<LineModel> alone(0, 1, 10, 4, Last::pad);
  const Evaluation expected = alone.evaluate(*single_strategy(*alone.model));
  CHECK(expected.samples == 7);
  CHECK(failures(run_ranks(3, As::processes, kDeadline, [&](testing::Rank& rank) {
          const auto backend = comm::join_good(rank);
          Fit<LineModel> fit(rank.rank(), 3, 12, 2, Last::pad);
          const comm::Group ranks(*backend, kDeadline);
          GradientSync sync(tensors_of(fit.model->module()), ranks, {});
          const auto got = fit.evaluate(*ddp_strategy(*fit.model, ranks, sync), ranks);
          require(got.samples == 7, "samples");
          require(std::abs(got.loss - expected.loss) < 1e-6, "loss");
        })) == "");
}

}  // namespace
}  // namespace ddprun::train
