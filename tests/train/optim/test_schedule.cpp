#include "support/torch_test.hpp"

#include <cmath>

#include "train/fit.hpp"
#include "train/optim/optimizers.hpp"

namespace ddprun::train {
namespace {

using doctest::Approx;

TEST_CASE("without a decay the rate is the optimizer's, after warm-up") {
  Schedule schedule;
  schedule.lr = 0.8;
  CHECK(learning_rate(schedule, 1) == 0.8);
  schedule.warmup = 4;
  CHECK(learning_rate(schedule, 1) == Approx(0.2));
  CHECK(learning_rate(schedule, 3) == Approx(0.6));
  CHECK(learning_rate(schedule, 4) == 0.8);
  CHECK(learning_rate(schedule, 1000) == 0.8);
}

TEST_CASE("step falls by its factor between epochs, and warm-up multiplies it") {
  Schedule schedule;
  schedule.decay = Decay::step;
  schedule.lr = 1;
  schedule.steps_per_epoch = 5;
  schedule.step_epochs = 2;
  schedule.step_factor = 0.1;
  CHECK(learning_rate(schedule, 1) == 1);
  CHECK(learning_rate(schedule, 10) == 1);
  CHECK(learning_rate(schedule, 11) == Approx(0.1));
  CHECK(learning_rate(schedule, 20) == Approx(0.1));
  CHECK(learning_rate(schedule, 21) == Approx(0.01));
  schedule.warmup = 20;
  CHECK(learning_rate(schedule, 10) == Approx(0.5));
  CHECK(learning_rate(schedule, 11) == Approx(0.055));
  CHECK(learning_rate(schedule, 20) == Approx(0.1));
}

TEST_CASE("cosine falls from lr after warm-up towards min_lr at the end") {
  Schedule schedule;
  schedule.decay = Decay::cosine;
  schedule.lr = 1;
  schedule.min_lr = 0.2;
  schedule.warmup = 10;
  schedule.total_steps = 30;
  CHECK(learning_rate(schedule, 5) == Approx(0.5));
  CHECK(learning_rate(schedule, 10) == 1);
  CHECK(learning_rate(schedule, 11) == 1);
  CHECK(learning_rate(schedule, 21) == Approx(0.6));
  CHECK(learning_rate(schedule, 30) == Approx(0.2 + 0.8 * (1 + std::cos(M_PI * 19 / 20)) / 2));
  for (int64_t step = 12; step <= 30; ++step) CHECK(learning_rate(schedule, step) < learning_rate(schedule, step - 1));
}

TEST_CASE("the optimizer uses the rate of the schedule, and the record reports it") {
  Fit<LineModel> fit(0, 1, 12, 4, Last::pad);
  fit.step.schedule = Schedule{};
  fit.step.schedule->decay = Decay::step;
  fit.step.schedule->lr = 0.1;
  fit.step.schedule->steps_per_epoch = 3;
  fit.step.schedule->step_factor = 0;
  torch::Tensor after_first_epoch;
  fit.notes.at_step = [&] {
    if (fit.notes.steps.size() == 3) after_first_epoch = fit.weights().clone();
  };
  const torch::Tensor before = fit.weights().clone();
  fit.run_single(epochs(2));
  REQUIRE(fit.notes.steps.size() == 6);
  CHECK(fit.notes.steps[2].lr == 0.1);
  CHECK(fit.notes.steps[3].lr == 0);
  CHECK_FALSE(torch::equal(after_first_epoch, before));
  CHECK(torch::equal(fit.weights(), after_first_epoch));  // a rate of 0 changes nothing

  Fit<LineModel> plain(0, 1, 12, 4, Last::pad);
  plain.run_single(epochs(1));
  CHECK(plain.notes.steps[0].lr == 0.05);
}

}  // namespace
}  // namespace ddprun::train
