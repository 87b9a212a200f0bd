// Errors in runs on GPUs, and how the runs end.
#include "e2e/gpu_runs.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

TEST_CASE("no GPU, or too few, is one line and exit code 3") {
  Runs runs(kSimplenet);
  const auto without = runs.start_on_gpus({}, {"DDPRUN_FAKE_GPUS=0"});
  CHECK(without.code == 3);
  const std::string place = "--set launch.device=cuda: launch.device = \"cuda\": ";
  CHECK(last_line(without.err) == place + "an NVIDIA driver, but no device: device \"cuda\" needs a GPU");
  const auto old = runs.start_on_gpus({}, {"DDPRUN_FAKE_DRIVER=12080"});
  CHECK(old.code == 3);
  CHECK(last_line(old.err) ==
        place + "the NVIDIA driver is for CUDA 12.8, this build needs 13.0: install a newer driver");
  const auto any = runs.start_on_gpus(kNccl + Settings{"launch.nproc=auto"}, {"DDPRUN_FAKE_GPUS=0"});
  CHECK(any.code == 3);
  CHECK(last_line(any.err) == last_line(without.err));
  const auto few = runs.start_on_gpus(kNccl + Settings{"launch.nproc=3"});
  CHECK(few.code == 3);
  CHECK(contains(few.err, place + "launch.nproc = 3, but this machine has 2 GPUs"));
  const auto wrong = runs.start_on_gpus({"launch.devices=[7]"});
  CHECK(wrong.code == 3);
  CHECK(contains(wrong.err, "--set launch.devices=[7]: launch.devices = [7]: no GPU 7: this machine has 2 GPUs"));
  CHECK(runs.place().leftovers().empty());
}

TEST_CASE("a rank on a GPU that is killed or stopped ends the job with 5, and nothing is left") {
  check_lost_rank(kOnGpu + kNccl + Settings{"comm.timeout=20s"});
}

TEST_CASE("a loss that is NaN is reported with its step, although it is read later") {
  Runs runs(kSimplenet);
  const auto gpu = runs.start_on_gpus({"optimizer.lr=1e25"});
  const auto cpu = runs.place().run(runs.argv({"optimizer.lr=1e25"}));
  CHECK(gpu.code == 1);
  CHECK(contains(last_line(gpu.err), "step 2 phase forward: the loss is nan"));
  CHECK(last_line(gpu.err) == last_line(cpu.err));
}

TEST_CASE("out of memory on the GPU is exit code 1, with what to try") {
  Runs runs(kSimplenet);
  const auto result = runs.start_on_gpus({"model.options.hidden=100000"}, {"DDPRUN_FAKE_GPU_MIB=256"});
  CHECK(result.code == 1);
  CHECK_MESSAGE(contains(last_line(result.err), "is free. Try a smaller data.batch_size"), result.err);
}

}  // namespace
