// Training on GPUs, on a machine without one: the fake GPUs compute what the CPU computes and detect missing stream
// synchronisation. So a run's losses and weights equal the CPU's, bit for bit.
#include "e2e/gpu_runs.hpp"
#include "support/paths.hpp"

#include <cstdio>

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

TEST_CASE("each model trains on one GPU as on the CPU") {
  for (const std::string& config : {kLinear, kSimplenet, kResnet}) {
    CAPTURE(config);
    Runs runs(config);
    const Trained gpu = runs.on_gpus({});
    check_same(gpu, runs.on_cpu({}));
    CHECK(contains(read_file(gpu.run / "environment.json"), "Fake GPU 0"));
    const std::string gpus = read_file(gpu.run / "gpus-rank0.jsonl");
    CHECK_MESSAGE(contains(gpus, "\"device\":0,\"allocated\":"), gpus);
    CHECK_MESSAGE(contains(gpus, "\"allocated\":"), gpus);
  }
}

TEST_CASE("each model trains on two GPUs over NCCL as on the CPU over Gloo") {
  for (const std::string& config : {kLinear, kSimplenet, kResnet}) {
    CAPTURE(config);
    Runs runs(config);
    check_same(runs.on_gpus(kNccl, 2), runs.on_cpu(kGloo, 2));
  }
}

TEST_CASE("each model trains with replicas on two GPUs as with two on the CPU, without races") {
  for (const std::string& config : {kLinear, kSimplenet, kResnet}) {
    CAPTURE(config);
    Runs runs(config);
    check_same(runs.on_gpus(kDp), runs.on_cpu(kDp));
    REQUIRE(runs.records().size() == 1);
    const std::string record = runs.records()[0];
    CHECK(contains(record, "cuda:1 stream"));
    CHECK_FALSE(contains(record, "race"));
  }
}

TEST_CASE("Gloo reduces the gradients of two GPUs through the host, only if configured") {
  Runs runs(kSimplenet);
  const auto refused = runs.start_on_gpus(kGloo);
  CHECK(refused.code == 3);
  CHECK(contains(refused.err, "comm.stage_through_host = true"));
  check_same(runs.on_gpus(kGloo + Settings{"comm.stage_through_host=true"}, 2), runs.on_cpu(kGloo, 2));
}

TEST_CASE("buckets are reduced on a separate stream, ordered with backward and the optimizer") {
  Runs runs(kSimplenet);
  runs.on_gpus(kNccl, 2);
  int ranks = 0;
  for (const std::string& record : runs.records()) {
    if (!contains(record, "AllReduce")) continue;
    ++ranks;
    CHECK_FALSE(contains(record, "race"));
    // The two buckets, on a separate stream.
    CHECK(contains(record, "AllReduce 10280 bytes\n"));
    CHECK(contains(record, "AllReduce 803840 bytes\n"));
    CHECK_FALSE(contains(record, "stream 0 AllReduce"));
  }
  CHECK(ranks == 2);
}

TEST_CASE("the GPU's work has no races, and the host does not wait for it") {
  Runs runs(kSimplenet);
  runs.on_gpus({});
  REQUIRE(runs.records().size() == 1);
  const std::string record = runs.records()[0];
  CHECK_FALSE(contains(record, "race"));
  // Batches are copied during the computation; losses are read later.
  CHECK(contains(record, "cuda:0 stream 1001 copies 75264 bytes from page-locked memory to cuda:0\n"));
  CHECK(contains(record, "cuda:0 stream 0 copies 4 bytes from cuda:0 to page-locked memory\n"));
  // Twenty steps: a wait for the loss in each step would show.
  int waits = 0;
  for (const std::string& line : lines_of(record)) waits += contains(line, "host waits for cuda:0");
  CHECK(waits < 10);
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

TEST_CASE("a run resumes on the same device, or on the other, bit for bit") {
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

TEST_CASE("a run with dropout resumes with the GPU's own random numbers") {
  std::string config = kSimplenet;
  config.replace(config.find("simplenet"), 9, build_dir() + "/tests/fakes/models/libddprun_model_dropnet.so");
  Runs runs(config);
  for (const Settings& settings : {Settings{}, kNccl}) {
    const int world = settings.empty() ? 1 : 2;
    const Trained whole = runs.on_gpus(settings, world);
    const Trained first = runs.on_gpus(settings + Settings{"train.epochs=1"}, world);
    const Trained second = runs.on_gpus(settings + Settings{"checkpoint.resume=" + first.run.string()}, world);
    CHECK((second.weights == whole.weights));
    CHECK((first.weights != whole.weights));
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
