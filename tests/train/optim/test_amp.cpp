#include "support/torch_test.hpp"

#include <ATen/autocast_mode.h>

#include <thread>

#include "comm/joined.hpp"
#include "train/fit.hpp"
#include "train/optim/precision.hpp"

namespace ddprun::train {
namespace {

using testing::As;
using testing::failures;
using testing::run_ranks;


// Twenty samples per rank and step, so that the gradients of an average loss stay in the range of float16 at the first
// scale.
Fit<WatchedModel> fit_of(Amp amp, int rank = 0, int world = 1) {
  Fit<WatchedModel> fit(rank, world, 80, 20, Last::pad);
  fit.step.amp = amp;
  return fit;
}

Job steps(int64_t count) {
  return {std::nullopt, count, false, {0}};
}

TEST_CASE("in mixed precision activations have half precision, weights and gradients float32") {
  for (const auto& [amp, type] :
       {std::pair{Amp::off, at::kFloat}, {Amp::bf16, at::kBFloat16}, {Amp::fp16, at::kHalf}}) {
    CAPTURE(static_cast<int>(amp));
    auto fit = fit_of(amp);
    fit.run_single(epochs(1));
    CHECK((fit.model->trained_in == type));
    CHECK((fit.model->evaluated_in == type));
    for (const torch::Tensor& parameter : fit.model->module().parameters()) {
      CHECK((parameter.scalar_type() == at::kFloat));
      CHECK((parameter.grad().scalar_type() == at::kFloat));
    }
  }
  CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}

TEST_CASE("mixed precision learns about as well as float32, but not identically") {
  auto plain = fit_of(Amp::off);
  const auto expected = plain.run_single(epochs(15));
  for (const Amp amp : {Amp::bf16, Amp::fp16}) {
    CAPTURE(static_cast<int>(amp));
    auto fit = fit_of(amp);
    const auto summary = fit.run_single(epochs(15));
    CHECK(summary.train_loss < plain.notes.epochs.front().train_loss / 4);
    CHECK(summary.train_loss == doctest::Approx(expected.train_loss).epsilon(0.05));
    CHECK(torch::allclose(fit.weights(), plain.weights(), 0.05, 0.02));
    CHECK_FALSE(torch::equal(fit.weights(), plain.weights()));
  }
}

TEST_CASE("autocast ends with its block, and ThreadLocalState passes it to another thread") {
  const torch::Tensor matrix = torch::ones({2, 2});
  at::ScalarType there = at::kInt, elsewhere = at::kInt;
  {
    const Autocast autocast(torch::kCPU, torch::kBFloat16);
    CHECK((torch::matmul(matrix, matrix).scalar_type() == at::kBFloat16));
    const at::ThreadLocalState mine;
    std::thread([&] {
      elsewhere = torch::matmul(matrix, matrix).scalar_type();
      const at::ThreadLocalStateGuard as_caller(mine);
      there = torch::matmul(matrix, matrix).scalar_type();
    }).join();
  }
  CHECK((there == at::kBFloat16));
  CHECK((elsewhere == at::kFloat));
  CHECK((torch::matmul(matrix, matrix).scalar_type() == at::kFloat));
}

TEST_CASE("an overflow on one rank makes both skip the step and halve the scale") {
  constexpr std::size_t kHot = 8;  // by then the scale is low enough for this loss
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
          const auto backend = comm::join_good(rank);
          auto fit = fit_of(Amp::fp16, rank.rank(), 2);
          std::vector<torch::Tensor> after;
          fit.notes.at_step = [&] {
            after.push_back(fit.weights().clone());
            fit.model->hot = rank.rank() == 1 && after.size() == kHot;
          };
          fit.run_ddp(steps(kHot + 2), *backend, /*hash_every=*/1);
          const auto& before = fit.notes.steps[kHot - 1];
          const auto& hot = fit.notes.steps[kHot];
          const auto& next = fit.notes.steps[kHot + 1];
          require(before.skipped == 0 && hot.skipped == 1 && next.skipped == 0, "skipped");
          require(hot.scale == before.scale && next.scale == hot.scale / 2, "scales");
          require(torch::equal(after[kHot - 1], after[kHot]), "weights of a step that was skipped");
          require(!torch::equal(after[kHot], after[kHot + 1]), "weights of the next step");
        })) == "");
}

TEST_CASE("a resumed fit has the saved scale") {
  auto fit = fit_of(Amp::fp16);
  fit.model->hot = true;
  fit.run_single(steps(3));
  auto next = fit_of(Amp::fp16);
  next.saved.begin = fit.saved.positions.back();
  next.run_single(steps(4));
  CHECK(fit.notes.steps.back().scale == 65536 / 4);
  CHECK(fit.notes.numbers.at("fp16.scale") == 65536 / 8);  // also after a step without a checkpoint
  CHECK(next.notes.steps.at(0).scale == 65536 / 8);
}

TEST_CASE("recorded losses and clipped gradients are unscaled") {
  constexpr double kLimit = 0.01, kRate = 0.05;  // the learning rate of Fit's optimizer
  auto plain = fit_of(Amp::off);
  plain.run_single(steps(1));
  CHECK(plain.notes.steps[0].skipped == -1);
  CHECK(std::isnan(plain.notes.steps[0].scale));

  auto fit = fit_of(Amp::fp16);
  fit.step.clip_norm = kLimit;
  torch::Tensor before = fit.weights().clone();
  int64_t stepped = 0;
  fit.notes.at_step = [&] {
    const double moved = (fit.weights() - before).norm().item<double>();
    const bool skipped = fit.notes.steps.back().skipped == 1;
    CHECK(moved == doctest::Approx(skipped ? 0 : kRate * kLimit).epsilon(1e-3));
    stepped += skipped ? 0 : 1;
    before = fit.weights().clone();
  };
  fit.run_single(steps(6));
  CHECK(stepped >= 3);
  CHECK(fit.notes.steps[0].loss == doctest::Approx(plain.notes.steps[0].loss).epsilon(0.01));
}

}  // namespace
}  // namespace ddprun::train
