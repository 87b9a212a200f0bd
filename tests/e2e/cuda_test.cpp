// Training on GPUs, on a machine without one: NVIDIA's libraries and Torch's are those of tests/fakes/cuda, which
// compute what the CPU does and find what streams do not order. So a run has the CPU's losses and weights, to the bit.
#include <doctest/doctest.h>

#include <csignal>
#include <cstdio>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

using Settings = std::vector<std::string>;

const std::string kLinear = R"(
[launch]
threads = 1
[model]
name = "linear"
[data]
name = "linear"
batch_size = 16
options = { samples = 64, test_samples = 16 }
[train]
epochs = 2
)";

const std::string kSimplenet = R"(
[launch]
threads = 1
[strategy]
first_bucket_mb = 0.001  # two buckets
bucket_mb = 0.4
[model]
name = "simplenet"
[data]
name = "synthetic"
batch_size = 24
options = { shape = "1x28x28", classes = 10, samples = 240, test_samples = 48 }
[optimizer]
lr = 0.05
momentum = 0.9
[train]
epochs = 2
)";

const std::string kResnet = R"(
[launch]
threads = 1
[model]
name = "resnet18"
options = { stem = "small" }
[data]
name = "synthetic"
batch_size = 6
options = { shape = "3x32x32", classes = 10, samples = 12, test_samples = 6 }
[optimizer]
lr = 0.01
)";

// `argv` on a machine with two GPUs, by what it is made to believe. Torch names the runtime by a path of its own, so
// that one has to be there before.
Settings with_gpus(Settings argv, Settings variables = {}) {
  const std::string folder = DDPRUN_BINARY_DIR "/tests/fakes/cuda";
  Settings all = {"/usr/bin/env", "LD_LIBRARY_PATH=" + folder, "LD_PRELOAD=" + folder + "/libcudart.so.13"};
  all.insert(all.end(), variables.begin(), variables.end());
  all.insert(all.end(), argv.begin(), argv.end());
  return all;
}

Settings operator+(Settings first, const Settings& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

const Settings kOnGpu = {"launch.device=cuda"};
const Settings kDp = {"strategy.kind=dp", "strategy.devices=2"};
const Settings kNccl = {"strategy.kind=ddp", "launch.nproc=2", "comm.backend=nccl"};
const Settings kGloo = {"strategy.kind=ddp", "launch.nproc=2", "comm.backend=gloo"};

std::map<std::string, std::string> tensors_of(const std::filesystem::path& run) {
  const auto file = ddprun::checkpoint::read_safetensors(commits_of(run).back().path);
  std::map<std::string, std::string> tensors;
  for (const auto& tensor : file.tensors) {
    tensors[tensor.name] =
        tensor.dtype + std::string(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  }
  return tensors;
}

struct Trained {
  std::vector<double> losses;
  std::map<std::string, std::string> weights;  // name -> type and bytes
  nlohmann::json summary;
  std::filesystem::path run;
  std::string err;
};

class Runs {
 public:
  explicit Runs(const std::string& config) : config_(place_.config(config)) {}

  Workplace& place() { return place_; }
  Settings argv(const Settings& settings) const { return place_.training(config_, settings); }

  Trained on_cpu(const Settings& settings, int world = 1) { return trained(argv(settings), world); }
  Trained on_gpus(const Settings& settings, int world = 1) {
    const Settings variables = {"DDPRUN_FAKE_GPU_LOG=" + (place_.folder() / "gpu").string()};
    return trained(with_gpus(argv(settings + kOnGpu), variables), world);
  }
  ProcessResult start_on_gpus(const Settings& settings, const Settings& variables = {}) {
    return place_.run(with_gpus(argv(settings + kOnGpu), variables));
  }
  // What the pretended GPUs of the last run remember, one text for each process.
  std::vector<std::string> records() const {
    std::vector<std::string> texts;
    for (const auto& entry : std::filesystem::directory_iterator(place_.folder())) {
      if (entry.path().filename().string().starts_with("gpu.")) texts.push_back(read_file(entry.path()));
    }
    return texts;
  }

 private:
  Trained trained(const Settings& argv, int world) {
    const auto result = place_.run(argv);
    INFO(result.err);
    REQUIRE(result.code == 0);
    const auto run = place_.new_run();
    return {losses_of(run, world), tensors_of(run), summary_of(run), run, result.err};
  }

  Workplace place_;
  std::string config_;
};

void check_same(const Trained& gpu, const Trained& cpu) {
  CHECK(distance(gpu.losses, cpu.losses) == 0);
  CHECK((gpu.weights == cpu.weights));
  CHECK(gpu.summary.at("test.loss") == cpu.summary.at("test.loss"));
}

TEST_CASE("each model trains on one GPU as on the CPU") {
  for (const std::string& config : {kLinear, kSimplenet, kResnet}) {
    CAPTURE(config);
    Runs runs(config);
    const Trained gpu = runs.on_gpus({});
    check_same(gpu, runs.on_cpu({}));
    CHECK(contains(read_file(gpu.run / "environment.json"), "Fake GPU 0"));
  }
}

TEST_CASE("each model trains on two GPUs over NCCL as on the CPU over Gloo") {
  for (const std::string& config : {kLinear, kSimplenet, kResnet}) {
    CAPTURE(config);
    Runs runs(config);
    check_same(runs.on_gpus(kNccl, 2), runs.on_cpu(kGloo, 2));
  }
}

TEST_CASE("Gloo reduces what two GPUs computed, through the host and only if it is told to") {
  Runs runs(kSimplenet);
  const auto refused = runs.start_on_gpus(kGloo);
  CHECK(refused.code == 3);
  CHECK(contains(refused.err, "comm.stage_through_host = true"));
  check_same(runs.on_gpus(kGloo + Settings{"comm.stage_through_host=true"}, 2), runs.on_cpu(kGloo, 2));
}

TEST_CASE("buckets are reduced on a stream of their own, which backward and the optimizer are ordered with") {
  Runs runs(kSimplenet);
  runs.on_gpus(kNccl, 2);
  int ranks = 0;
  for (const std::string& record : runs.records()) {
    if (!contains(record, "AllReduce")) continue;
    ++ranks;
    CHECK_FALSE(contains(record, "race"));
    // The two buckets, on a stream of their own.
    CHECK(contains(record, "AllReduce 10280 bytes\n"));
    CHECK(contains(record, "AllReduce 803840 bytes\n"));
    CHECK_FALSE(contains(record, "stream 0 AllReduce"));
  }
  CHECK(ranks == 2);
}

TEST_CASE("SIGKILL of a rank on a GPU ends the job with 5, and nothing is left") {
  Runs runs(kSimplenet);
  Job job(runs.place(), with_gpus(runs.argv(kOnGpu + kNccl + Settings{"train.epochs=100000", "log.every=1"})));
  job.wait_for_steps();
  const auto below = job.descendants();
  kill(job.ranks(2).at(1), SIGKILL);
  const auto result = job.launcher().wait();
  CHECK(result.code == 5);
  CHECK_MESSAGE(contains(last_line(result.err), "killed by signal 9 (SIGKILL)"), result.err);
  CHECK(eventually([&] { return std::none_of(below.begin(), below.end(), is_alive); }));
  CHECK(runs.place().leftovers().empty());
}

TEST_CASE("what the GPU computes is found neither racing nor waited for by the host") {
  Runs runs(kSimplenet);
  runs.on_gpus({});
  REQUIRE(runs.records().size() == 1);
  const std::string record = runs.records()[0];
  CHECK_FALSE(contains(record, "race"));
  // Batches go beside the computation; the figures come later.
  CHECK(contains(record, "cuda:0 stream 1001 copies 75264 bytes from page-locked memory to cuda:0\n"));
  CHECK(contains(record, "cuda:0 stream 0 copies 4 bytes from cuda:0 to page-locked memory\n"));
  // Twenty steps: a loss that is waited for in each would show.
  int waits = 0;
  for (const std::string& line : lines_of(record)) waits += contains(line, "host waits for cuda:0");
  CHECK(waits < 10);
}

TEST_CASE("no GPU, or too few, is one line and exit code 3") {
  Runs runs(kSimplenet);
  const auto without = runs.start_on_gpus({}, {"DDPRUN_FAKE_GPUS=0"});
  CHECK(without.code == 3);
  CHECK(last_line(without.err) == "an NVIDIA driver, but no device: device \"cuda\" needs a GPU");
  const auto old = runs.start_on_gpus({}, {"DDPRUN_FAKE_DRIVER=12080"});
  CHECK(old.code == 3);
  CHECK(last_line(old.err) == "the NVIDIA driver is for CUDA 12.8, this build needs 13.0: install a newer driver");
  const auto few = runs.start_on_gpus(kNccl + Settings{"launch.nproc=3"});
  CHECK(few.code == 3);
  CHECK(contains(few.err, "launch.nproc = 3, but this machine has 2 GPUs"));
  CHECK(runs.place().leftovers().empty());
}

TEST_CASE("half precision trains on a GPU") {
  Runs runs(kSimplenet);
  const Trained exact = runs.on_gpus({});
  for (const std::string amp : {"bf16", "fp16"}) {
    CAPTURE(amp);
    const Trained half = runs.on_gpus({"train.amp=" + amp});
    CHECK(distance(half.losses, exact.losses) > 0);
    CHECK(distance(half.losses, exact.losses) < 0.01);
  }
}

TEST_CASE("a run goes on where it was trained, or on the other device, bit for bit") {
  Runs runs(kSimplenet);
  const Trained whole = runs.on_gpus({});
  for (const bool first_on_gpu : {true, false}) {
    CAPTURE(first_on_gpu);
    const Settings half = {"train.epochs=1"};
    const Trained first = first_on_gpu ? runs.on_gpus(half) : runs.on_cpu(half);
    const Settings resume = {"checkpoint.resume=" + first.run.string()};
    CHECK(((first_on_gpu ? runs.on_cpu(resume) : runs.on_gpus(resume)).weights == whole.weights));
    CHECK((runs.on_gpus(resume).weights == whole.weights));
  }
}

TEST_CASE("a checkpoint of a GPU is evaluated on either device") {
  Runs runs(kSimplenet);
  const Trained gpu = runs.on_gpus({});
  char loss[32];
  std::snprintf(loss, sizeof loss, "%.4f", gpu.summary.at("test.loss").get<double>());
  const Settings evaluate = {program(), "evaluate", "--checkpoint", gpu.run.string()};
  for (const Settings& argv : {with_gpus(evaluate + Settings{"--set", "launch.device=cuda"}),
                               evaluate + Settings{"--set", "launch.device=cpu"}}) {
    const auto result = runs.place().run(argv);
    CHECK_MESSAGE(result.code == 0, result.err);
    CHECK(contains(result.out, loss));
  }
}

}  // namespace
