// Errors in keys of GPU runs that conflict with each other or with other keys.
#include <doctest/doctest.h>

#include "written.hpp"

using namespace ddprun;
using testing::errors_of;
using testing::load_text;
using testing::required;

namespace {

// The keys that every experiment needs, without table headers.
const std::string names = "\nmodel.name = 'x'\ndata.name = 'x'";
const std::string cuda = "\nlaunch.device = 'cuda'";

}  // namespace

TEST_CASE("launch.devices names a GPU for each rank, or none") {
  const std::string devices = "launch.devices = [0, 1, 1]", ddp = cuda + "\nstrategy.kind = 'ddp'";
  CHECK(load_text(devices + ddp + "\nlaunch.nproc = 3\ndata.batch_size = 9" + names).experiment.launch.devices ==
        std::vector<int64_t>{0, 1, 1});
  CHECK(errors_of(devices + ddp + "\nlaunch.nproc = 2" + names) ==
        "exp.toml:1:18: launch.devices = [0, 1, 1]: names 3 GPUs, and launch.nproc = 2; name one for each, or leave it "
        "out");
  CHECK(errors_of("launch.devices = []" + ddp + "\nlaunch.nproc = 2" + names) == "");
  CHECK(errors_of(devices + ddp + "\nlaunch.nproc = 'auto'" + names) == "");  // as many ranks as devices
}

TEST_CASE("dp needs a GPU for each device, and single needs one") {
  const std::string dp = cuda + "\nstrategy.kind = 'dp'\nstrategy.devices = 2";
  CHECK(errors_of("launch.devices = [1, 0]" + dp + names) == "");
  CHECK(
      errors_of("launch.devices = [1]" + dp + names) ==
      "exp.toml:1:18: launch.devices = [1]: names 1 GPU, and strategy.devices = 2; name one for each, or leave it out");
  CHECK(errors_of("launch.devices = [1]" + cuda + names) == "");
  CHECK(errors_of("launch.devices = [1, 0]" + cuda + names) ==
        "exp.toml:1:18: launch.devices = [1, 0]: names 2 GPUs, and strategy \"single\" has one; name one");
  CHECK(errors_of("launch.devices = [-1]" + cuda + names) ==
        "exp.toml:1:18: launch.devices = [-1]: expected a list of integers from 0 to 1023");
}

TEST_CASE("on a CPU, keys that only a GPU uses are allowed and reported") {
  const auto loaded =
      load_text("launch.devices = [1, 0]\ndata.pin_memory = false\ntrain.cudnn_benchmark = true" + names);
  CHECK(config::unused_keys(loaded.experiment, loaded.sources) ==
        std::vector<std::string>{"data.pin_memory", "launch.devices", "train.cudnn_benchmark"});
  const auto on_gpu = load_text("data.pin_memory = false" + cuda + names);
  CHECK(config::unused_keys(on_gpu.experiment, on_gpu.sources).empty());
}

TEST_CASE("deterministic kernels are not chosen by a measurement") {
  const std::string both = "train.deterministic = true\ntrain.cudnn_benchmark = true";
  CHECK(errors_of(both + cuda + names) ==
        "exp.toml:1:23: train.deterministic = true: needs train.cudnn_benchmark = false, because a measurement may "
        "choose another kernel in each run");
  CHECK(errors_of("train.deterministic = true" + cuda + names) == "");
}

TEST_CASE("steps are replayed only on a GPU, under single and ddp") {
  const std::string graph = "train.cuda_graph = true", ddp = cuda + "\nstrategy.kind = 'ddp'\nlaunch.nproc = 2";
  CHECK(load_text(graph + cuda + names).experiment.train.cuda_graph);
  CHECK(errors_of(graph + ddp + "\ndata.batch_size = 8" + names) == "");
  CHECK(errors_of(graph + cuda + "\ntrain.amp = 'fp16'\ntrain.accumulate = 2\ntrain.schedule = 'cosine'" + names) ==
        "");
  CHECK(errors_of(graph + names) ==
        "exp.toml:1:20: train.cuda_graph = true: needs launch.device = \"cuda\"; set it to false on a CPU");
  CHECK(errors_of(graph + cuda + "\nstrategy.kind = 'dp'" + names) ==
        "exp.toml:1:20: train.cuda_graph = true: is for strategies \"single\" and \"ddp\": the threads of \"dp\" "
        "cannot be "
        "recorded; set it to false");
  CHECK(errors_of(graph + cuda + "\noptimizer.fused = false" + names) ==
        "exp.toml:1:20: train.cuda_graph = true: needs optimizer.fused = true, which takes its numbers from the GPU");
  const std::string unequal =
      "exp.toml:1:20: train.cuda_graph = true: needs an equal part of each step for all ranks; leave out "
      "data.batch_weights "
      "and "
      "data.balance_steps, or set it to false";
  CHECK(errors_of(graph + ddp + "\ndata.batch_size = 8\ndata.batch_weights = [1, 2]" + names) == unequal);
  CHECK(errors_of(graph + ddp + "\ndata.batch_size = 8\ndata.balance_steps = 5" + names) == unequal);
  CHECK(
      errors_of(graph + ddp + "\ndata.batch_size = 8\nstrategy.zero = 1" + names) ==
      "exp.toml:1:20: train.cuda_graph = true: cannot replay the optimizer of strategy.zero = 1; set strategy.zero to "
      "0, or this to false");
  CHECK(errors_of(graph + cuda + "\nlog.parity_steps = 2" + names) ==
        "exp.toml:1:20: train.cuda_graph = true: leaves log.parity_steps no gradients to look at; leave those out, or "
        "set "
        "it to false");
  CHECK(errors_of(graph + cuda + "\nlog.trace_steps = [2]" + names) ==
        "exp.toml:1:20: train.cuda_graph = true: leaves log.trace_steps no operations to trace; leave those out, or "
        "set it "
        "to false");
}
