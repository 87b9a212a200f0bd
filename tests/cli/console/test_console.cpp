#include <doctest/doctest.h>

#include <string>

#include "cli/console/console.hpp"
#include "support/golden.hpp"
#include "support/text.hpp"

using namespace ddprun;
using console::StepLine;
using ddprun::testing::contains;

namespace {

console::Meter meter(double recent, double all) {
  return {{recent, 1}, {all, 1}};
}

}  // namespace

TEST_CASE("what a run prints: lines of steps and epochs, summaries") {
  StepLine classes{.epoch = 1, .step = 50, .steps = 469};
  classes.time = meter(0.012, 0.013);
  classes.data = meter(0.001, 0.001);
  classes.loss = meter(0.4321, 0.5678);
  classes.accuracy = meter(0.875, 0.8312);
  StepLine since = classes;
  since.of_rank0 = true;
  since.since = 41;
  StepLine regression{.epoch = 3, .step = 1, .steps = 10};
  regression.time = meter(0.00012, 0.00013);
  regression.data = meter(0, 0);
  regression.loss = meter(0.0095, 1.2345678);
  std::string text;
  for (const StepLine& line : {classes, since, regression}) text += console::step_line(line) + "\n";

  record::EpochRecord epoch;
  epoch.epoch = 2;
  epoch.seconds = 6.214;
  epoch.train_loss = 0.4321;
  epoch.train_accuracy = 0.875;
  epoch.validation_loss = 0.41;
  epoch.test_loss = 0.39;
  epoch.test_accuracy = 0.8801;
  epoch.per_rank_loss = {0.431, 0.4332};
  text += console::epoch_line(epoch) + "\n";
  record::EpochRecord only_trained;
  only_trained.train_loss = 0.5;
  text += console::epoch_line(only_trained) + "\n";
  text += console::learned_line({{"weight", 1.99984}, {"bias", 3.0004}});

  record::Summary ddp;
  ddp.test_accuracy = 0.8801;
  ddp.total_time = 75;
  ddp.throughput = 61234;
  ddp.avg_batch_time = 0.010;
  ddp.avg_data_time = 0.001;
  ddp.split = {0.002, 0.004, 0.0015, 0.0005};
  ddp.world = 2;
  ddp.backend = "gloo";
  ddp.algorithm = "ring";
  ddp.transport = "tcp";
  ddp.comm_bytes = 46871150;
  ddp.comm_time = 0.04;
  ddp.comm_busbw = 1.17e9;
  record::Summary dp;
  dp.avg_batch_time = 0.010;
  dp.split.forward = 0.004;
  dp.split.comm = 0.005;
  dp.split.replicate = 0.002;
  dp.split.scatter = 0.0005;
  dp.split.gather = 0.0005;
  dp.split.reduce = 0.002;
  dp.peak_memory_bytes = 512 << 20;
  dp.memory_by_device = {100 << 20, 50 << 20};
  for (const record::Summary& summary : {ddp, dp}) text += "\n" + console::summary_table(summary);
  testing::check_golden("cli/console/run.txt", text);
}

TEST_CASE("without learned values there is no line") {
  CHECK(console::learned_line({}) == "");
}

TEST_CASE("the summary reports how much a step allreduces only in a world of several ranks") {
  record::Summary summary;
  summary.backend = "gloo";
  summary.algorithm = "ring";
  summary.comm_bytes = 46871150;
  summary.comm_time = 0.04;
  summary.comm_busbw = 3.4e6;
  CHECK(contains(console::summary_table(summary), "44.7 MiB per step  3.40 MB/s busbw\n"));
  summary.comm_busbw = record::kAbsent;  // a world of one
  CHECK(console::summary_table(summary) == "communication  gloo ring\n");
  summary.backend = summary.algorithm = summary.transport = "nccl";
  CHECK(console::summary_table(summary) == "communication  nccl\n");
}

TEST_CASE("the summary says after which epoch train.early_stop has ended the run") {
  record::Summary summary;
  summary.epochs = 7;
  summary.stopped = "early_stop";
  CHECK(console::summary_table(summary) == "early stop after epoch  7\n");
}
