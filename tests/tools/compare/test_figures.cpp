#include <doctest/doctest.h>

#include <cmath>

#include "support/error_of.hpp"
#include "support/text.hpp"
#include "tools/compare/figures.hpp"

using namespace ddprun;
using namespace ddprun::compare;
using ddprun::testing::contains;
using ddprun::testing::error_of;

namespace {

// Two ranks, `steps` steps; the first step is slow, as usual. Rank 1 takes twice as long as rank 0.
tools::Run some_run(int64_t steps) {
  tools::Run run;
  run.dir = "run";
  run.steps.resize(2);
  for (int rank = 0; rank < 2; ++rank) {
    for (int64_t number = 1; number <= steps; ++number) {
      record::StepRecord step;
      step.step = number;
      step.samples = 10;
      step.loss = static_cast<double>(number + rank);
      const double scale = (rank + 1) * (number == 1 ? 100.0 : 1.0);
      step.data = 0.01 * scale;
      step.forward = 0.02 * scale;
      step.backward = 0.03 * scale;
      step.comm = 0.015 * scale;
      step.optimizer = 0.005 * scale;
      step.total = 0.1 * scale;
      run.steps[static_cast<std::size_t>(rank)].push_back(step);
    }
  }
  run.summary.peak_memory_bytes = 1000;
  return run;
}

}  // namespace

TEST_CASE("figures are those of the slowest rank, without the warm-up") {
  const Figures figures = figures_of(some_run(5), 1);
  CHECK(figures.total_time == doctest::Approx(0.8));
  CHECK(figures.step == doctest::Approx(0.2));
  CHECK(figures.samples == 80);
  CHECK(figures.throughput == doctest::Approx(100));
  CHECK(figures.split.data == doctest::Approx(0.02));
  CHECK(figures.split.comm == doctest::Approx(0.03));
  CHECK(figures.split.other == doctest::Approx(0.04));
  CHECK(figures.split.total() == doctest::Approx(figures.step));
  CHECK(figures.split.compute() == doctest::Approx(0.15));
  CHECK(figures.step_times.size() == 4);
  CHECK(figures.first_step == 2);
  CHECK(figures.losses == std::vector<double>{1.5, 2.5, 3.5, 4.5, 5.5});
  CHECK(figures.peak_memory == 1000);
  CHECK(std::isnan(figures.busbw));
  CHECK(std::isnan(figures.split.scatter));
}

TEST_CASE("losses are means over samples, and a rank without samples does not count") {
  tools::Run run = some_run(2);
  run.steps[0][0].samples = 30;
  run.steps[1][1].samples = 0;
  run.steps[1][1].loss = record::kAbsent;
  CHECK(figures_of(run, 0).losses == std::vector<double>{1.25, 2});
}

TEST_CASE("a run without steps after warm-up is refused") {
  CHECK(error_of([] { figures_of(some_run(3), 3); }) ==
        "2: run: the run has 3 steps, and 3 are left out as warm-up; train longer, or lower --warmup-steps");
  tools::Run run = some_run(3);
  run.steps[1].pop_back();
  CHECK(contains(error_of([&] { figures_of(run, 0); }), "different numbers of steps"));
}

// Medians of parts, each taken by itself, are 427 of 607 here.
TEST_CASE("the parts of a typical step add up to the step of the median run") {
  std::vector<Figures> runs(5);
  const std::vector<Split> splits = {{0, 400, 200, 0, 0, 0},
                                     {0, 100, 520, 0, 0, 0},
                                     {0, 180, 410, 0, 0, 0},
                                     {180, 17, 410, 0, 0, 0},
                                     {170, 37, 410, 0, 0, 0}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].split = splits[i];
    runs[i].step = runs[i].split.total();
  }
  const Typical typical = typical_of(runs);
  CHECK(typical.figures.step == doctest::Approx(607));
  CHECK(typical.figures.split.total() == doctest::Approx(typical.figures.step));
}

TEST_CASE("typical figures are the medians of each figure, and the split and the steps of the median run") {
  std::vector<Figures> runs(3, figures_of(some_run(5), 1));
  runs[0].step = 0.3;
  runs[1].step = 0.1;
  runs[1].step_times = {0.1};
  runs[2].step_times = {0.7};
  runs[2].split.data = 0.9;
  runs[2].split.scatter = 0.8;
  runs[0].busbw = 5;
  const Typical typical = typical_of(runs);
  CHECK(typical.figures.step == doctest::Approx(0.2));
  CHECK(typical.step_low == doctest::Approx(0.15));
  CHECK(typical.step_high == doctest::Approx(0.25));
  CHECK(typical.figures.step_times == std::vector<double>{0.7});
  CHECK(typical.figures.split.data == doctest::Approx(0.9));
  CHECK(typical.figures.split.scatter == doctest::Approx(0.8));
  CHECK(typical.figures.busbw == 5);
}

TEST_CASE("the part that a change is about") {
  CHECK(lever_of({"comm.algorithm", "comm.backend"}) == &Split::comm);
  CHECK(lever_of({"strategy.kind", "comm.backend"}) == &Split::comm);
  CHECK(lever_of({"data.workers"}) == &Split::data);
  CHECK(lever_of({"optimizer.eps"}) == &Split::optimizer);
}
