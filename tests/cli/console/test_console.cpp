#include <doctest/doctest.h>

#include <string>

#include "cli/console/console.hpp"
#include "support/contains.hpp"

using namespace ddprun;
using console::StepLine;
using ddprun::testing::contains;

namespace {

console::Meter meter(double recent, double all) {
  return {{recent, 1}, {all, 1}};
}

console::Banner mnist() {
  console::Banner banner;
  banner.name = "mnist";
  banner.model = "simplenet";
  banner.parameters = 203530;
  banner.data = "mnist";
  banner.train_samples = 60000;
  banner.test_samples = 10000;
  banner.strategy = "ddp";
  banner.backend = "gloo";
  banner.algorithm = "ring";
  banner.optimizer = "adam";
  banner.lr = 0.001;
  banner.world = 2;
  banner.global_batch = 128;
  banner.rank_batch = 64;
  banner.device = "cpu";
  banner.threads = 1;
  banner.gpu_present = false;
  banner.epochs = 3;
  banner.steps_per_epoch = 469;
  banner.seed = 42;
  banner.run_dir = "runs/mnist-20260101-120000";
  return banner;
}

}  // namespace

TEST_CASE("a step line has the form of PyTorch's examples") {
  StepLine line{.epoch = 1, .step = 50, .steps = 469};
  line.time = meter(0.012, 0.013);
  line.data = meter(0.001, 0.001);
  line.loss = meter(0.4321, 0.5678);
  line.accuracy = meter(0.875, 0.8312);
  CHECK(console::step_line(line) ==
        "epoch 1 [50/469] time 12.0 ms (13.0 ms) data 1.00 ms (1.00 ms) loss 0.4321 (0.5678) acc 87.50 (83.12)\n");
  line.of_rank0 = true;
  line.since = 41;
  CHECK(console::step_line(line) ==
        "epoch 1 [50/469] rank 0: time 12.0 ms (13.0 ms) data 1.00 ms (1.00 ms) loss 0.4321 (0.5678) acc 87.50 (83.12)"
        "; averages since step 41\n");
}

TEST_CASE("a step line of a regression has no accuracy, and short times and small losses keep their digits") {
  StepLine line{.epoch = 3, .step = 1, .steps = 10};
  line.time = meter(0.00012, 0.00013);
  line.data = meter(0, 0);
  line.loss = meter(0.0095, 1.2345678);
  CHECK(console::step_line(line) == "epoch 3 [1/10] time 120 us (130 us) data 0 s (0 s) loss 0.009500 (1.2346)\n");
}

TEST_CASE("an epoch line has the losses of training, validation, test and each rank") {
  record::EpochRecord epoch;
  epoch.epoch = 2;
  epoch.seconds = 6.214;
  epoch.train_loss = 0.4321;
  epoch.train_accuracy = 0.875;
  epoch.validation_loss = 0.41;
  epoch.test_loss = 0.39;
  epoch.test_accuracy = 0.8801;
  epoch.per_rank_loss = {0.431, 0.4332};
  CHECK(console::epoch_line(epoch) ==
        "epoch 2 done in 6.21 s: train loss 0.4321, acc 87.50; validation loss 0.4100; test loss 0.3900, acc 88.01; "
        "train loss by rank 0.4310 0.4332\n");
}

TEST_CASE("an epoch line leaves out what was not measured") {
  record::EpochRecord epoch;
  epoch.train_loss = 0.5;
  CHECK(console::epoch_line(epoch) == "epoch 1 done: train loss 0.5000\n");
}

TEST_CASE("the summary splits the average step, and shows the rest as other") {
  record::Summary summary;
  summary.test_accuracy = 0.8801;
  summary.total_time = 75;
  summary.throughput = 61234;
  summary.avg_batch_time = 0.010;
  summary.avg_data_time = 0.001;
  summary.split = {0.002, 0.004, 0.0015, 0.0005};
  summary.world = 2;
  summary.backend = "gloo";
  summary.algorithm = "ring";
  summary.transport = "tcp";
  CHECK(console::summary_table(summary) ==
        "test accuracy                     88.01 %\n"
        "total time                     1 min 15 s\n"
        "throughput               61,234 samples/s\n"
        "average step                      10.0 ms  100.0 %\n"
        "  data wait                       1.00 ms   10.0 %\n"
        "  forward                         2.00 ms   20.0 %\n"
        "  backward                        4.00 ms   40.0 %\n"
        "  exposed communication           1.50 ms   15.0 %\n"
        "  optimizer                        500 us    5.0 %\n"
        "  other                           1.00 ms   10.0 %\n"
        "world size                              2\n"
        "communication             gloo ring (tcp)\n");
}

TEST_CASE("the summary of a run with replayed steps separates the graph from the parts of the other steps") {
  record::Summary summary;
  summary.avg_batch_time = 0.010;
  summary.split.forward = summary.split.backward = 0.0005;
  summary.split.graph = 0.008;
  CHECK(console::summary_table(summary) ==
        "average step  10.0 ms  100.0 %\n"
        "  forward      500 us    5.0 %\n"
        "  backward     500 us    5.0 %\n"
        "  CUDA graph  8.00 ms   80.0 %\n"
        "  other       1.00 ms   10.0 %\n");
}

TEST_CASE("the summary of dp splits communication further, and has each device's memory") {
  record::Summary summary;
  summary.avg_batch_time = 0.010;
  summary.split.forward = 0.004;
  summary.split.comm = 0.005;
  summary.split.replicate = 0.002;
  summary.split.scatter = 0.0005;
  summary.split.gather = 0.0005;
  summary.split.reduce = 0.002;
  summary.peak_memory_bytes = 512 << 20;
  summary.memory_by_device = {100 << 20, 50 << 20};
  CHECK(console::summary_table(summary) ==
        "average step              10.0 ms  100.0 %\n"
        "  forward                 4.00 ms   40.0 %\n"
        "  exposed communication   5.00 ms   50.0 %\n"
        "    replicate             2.00 ms   20.0 %\n"
        "    scatter                500 us    5.0 %\n"
        "    gather                 500 us    5.0 %\n"
        "    reduce                2.00 ms   20.0 %\n"
        "  other                   1.00 ms   10.0 %\n"
        "peak memory               512 MiB\n"
        "  tensors of device 0     100 MiB\n"
        "  tensors of device 1    50.0 MiB\n");
}

TEST_CASE("the summary reports how much a step allreduces, and how fast") {
  record::Summary summary;
  summary.backend = "gloo";
  summary.algorithm = "ring";
  summary.comm_bytes = 46871150;
  summary.comm_time = 0.04;
  summary.comm_busbw = 1.17e9;
  CHECK(console::summary_table(summary) ==
        "communication          gloo ring\n"
        "  allreduced   44.7 MiB per step  1.17 GB/s busbw\n");
  summary.comm_busbw = 3.4e6;
  CHECK(console::summary_table(summary).find("3.40 MB/s busbw") != std::string::npos);
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

TEST_CASE("the banner describes the run and its machine, and says that there is no GPU") {
  CHECK(console::banner(mnist()) ==
        "experiment  mnist, seed 42\n"
        "model       simplenet, 203,530 parameters\n"
        "data        mnist, 60,000 training samples, 10,000 test samples\n"
        "strategy    ddp over gloo, algorithm ring\n"
        "optimizer   adam, lr = 0.001\n"
        "world size  2\n"
        "batch       128 in all, 64 per rank\n"
        "device      cpu, 1 thread per rank\n"
        "            no GPU on this machine: everything runs on the CPU\n"
        "length      3 epochs of 469 steps\n"
        "step lines  means since the line before (in parentheses: since the start of the epoch), of rank 0\n"
        "run folder  runs/mnist-20260101-120000\n");
}

TEST_CASE("the banner does not mention a GPU if there is one, nor a backend for a single process") {
  console::Banner banner = mnist();
  banner.gpu_present = true;
  banner.strategy = "single";
  banner.backend = "";
  const std::string text = console::banner(banner);
  CHECK_FALSE(contains(text, "GPU"));
  CHECK(contains(text, "strategy    single\n"));
}

TEST_CASE("the banner has the keys of learning that are not the default, and the learning rate of all ranks") {
  console::Banner banner = mnist();
  banner.lr_factor = 2;
  banner.settings = {"standardize = true", "compression = \"bf16\"", "weight_decay = 0.01",
                     "accumulate = 4, amp = \"bf16\""};
  const std::string text = console::banner(banner);
  CHECK(contains(text, "data        mnist, 60,000 training samples, 10,000 test samples; standardize = true\n"));
  CHECK(contains(text, "strategy    ddp over gloo, algorithm ring; compression = \"bf16\"\n"));
  CHECK(contains(text, "optimizer   adam, lr = 0.002 (0.001 x 2 ranks), weight_decay = 0.01\n"));
  CHECK(contains(text, "training    accumulate = 4, amp = \"bf16\"\n"));
}

TEST_CASE("the banner says how threads wait if that is set") {
  console::Banner banner = mnist();
  banner.threads = 2;
  banner.wait_policy = "passive";
  CHECK(contains(console::banner(banner), "device      cpu, 2 threads per rank, OMP_WAIT_POLICY=passive\n"));
}

TEST_CASE("the banner of dp shows devices in place of ranks") {
  console::Banner banner = mnist();
  banner.strategy = "dp";
  banner.backend = "";
  banner.world = 1;
  banner.devices = 3;
  banner.global_batch = 64;
  const std::string text = console::banner(banner);
  CHECK(contains(text, "strategy    dp\n"));
  CHECK(contains(text, "batch       64 in all, at most 22 per device\n"));
  CHECK(contains(text, "device      cpu, 3 devices of 1 thread\n"));
}

TEST_CASE("learned values are one line; without values there is no line") {
  CHECK(console::learned_line({{"weight", 1.99984}, {"bias", 3.0004}}) == "learned: weight 1.9998, bias 3.0004\n");
  CHECK(console::learned_line({}) == "");
}
