// Runs whose steps are replayed as a CUDA graph, on fake GPUs: they end with the results of the same runs without
// graphs.
#include <filesystem>
#include <fstream>

#include "e2e/gpu_runs.hpp"
#include "support/paths.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

const Settings kGraph = {"train.cuda_graph=true"};
const Settings kShortLast = {"data.batch_size=50"};  // of 240 samples: the last step of an epoch has 40
const Settings kHalves = {"train.accumulate=2"};

// The step numbers of a rank that were replayed. These have all their time in one part.
std::vector<int64_t> replayed(const Trained& run, int rank = 0) {
  std::vector<int64_t> steps;
  for (const nlohmann::json& step : steps_of(run.run, rank)) {
    for (const char* const part : {"forward", "backward", "comm", "optimizer"}) {
      CHECK(step.contains(part) != step.contains("graph"));
    }
    CHECK(step.at("total") > 0);
    if (step.contains("graph")) steps.push_back(step.at("step"));
  }
  return steps;
}

using Steps = std::vector<int64_t>;

Steps from_to(int64_t first, int64_t last) {
  Steps steps;
  for (int64_t step = first; step <= last; ++step) steps.push_back(step);
  return steps;
}

// The same run without a graph and with one.
struct Both {
  Both(const std::string& config, const Settings& settings, int world = 1)
      : runs(config), eager(runs.on_gpus(settings, world)), graph(runs.on_gpus(settings + kGraph, world)) {}
  Runs runs;
  Trained eager, graph;
};

TEST_CASE("each model trains bitwise equally with and without a graph") {
  for (const auto& [config, last] : {std::pair(kLinear, 8), {kSimplenet, 20}, {kResnet, 8}}) {
    CAPTURE(config);
    const Both runs(config, {"train.epochs=" + std::string(config == kResnet ? "4" : "2")});
    check_same(runs.graph, runs.eager);
    CHECK(replayed(runs.eager) == Steps{});
    CHECK(replayed(runs.graph) == from_to(4, last));
  }
}

TEST_CASE("two ranks train bitwise equally with and without graphs, without races") {
  for (const auto& [config, last] : {std::pair(kLinear, 8), {kSimplenet, 20}, {kResnet, 8}}) {
    CAPTURE(config);
    Runs runs(config);
    const Settings settings = kNccl + Settings{"train.epochs=" + std::string(config == kResnet ? "4" : "2")};
    const Trained eager = runs.on_gpus(settings, 2);
    const Trained graph = runs.on_gpus(settings + kGraph, 2);
    check_same(graph, eager);
    for (const int rank : {0, 1}) CHECK(replayed(graph, rank) == from_to(4, last));
    for (const std::string& record : runs.records()) CHECK_FALSE(contains(record, "race"));
    CHECK(graph.summary.at("algorithm") == eager.summary.at("algorithm"));
    CHECK(graph.summary.at("comm.bytes") == eager.summary.at("comm.bytes"));
    CHECK_FALSE(graph.summary.contains("comm.time"));
  }
}

TEST_CASE("the optional parts of a step are in the graph, bitwise equal") {
  const std::vector<Settings> all = {
      {"optimizer.name=adam"},
      {"optimizer.name=adamw", "train.clip_norm=0.1"},
      {"train.amp=bf16", "train.channels_last=true"},
      {"train.amp=fp16"},
      {"train.amp=fp16", "optimizer.name=adam", "train.clip_norm=0.1"},
      kHalves,
      kHalves + Settings{"train.amp=fp16"},
  };
  for (const Settings& settings : all) {
    for (const Settings& way : {Settings{}, kNccl}) {
      CAPTURE(settings.front());
      CAPTURE(way.size());
      const int world = way.empty() ? 1 : 2;
      const Both runs(kSimplenet, settings + way, world);
      check_same(runs.graph, runs.eager);
      CHECK(replayed(runs.graph) == from_to(4, 20));
    }
  }
}

TEST_CASE("a changing learning rate is float32 in a graph") {
  for (const std::string optimizer : {"sgd", "adam"}) {
    CAPTURE(optimizer);
    const Both runs(kSimplenet, {"train.schedule=cosine", "train.warmup=5", "optimizer.name=" + optimizer});
    CHECK(distance(runs.graph.losses, runs.eager.losses) < 1e-5);
    const auto steps = steps_of(runs.graph.run, 0), expected = steps_of(runs.eager.run, 0);
    for (std::size_t i = 0; i < steps.size(); ++i) CHECK(steps[i].at("lr") == expected[i].at("lr"));
    const Both fixed(kSimplenet, {"optimizer.name=" + optimizer});
    CHECK(distance(runs.graph.losses, fixed.graph.losses) > 1e-3);
  }
}

TEST_CASE("a smaller batch at the end of an epoch is not replayed") {
  for (const Settings& way : {Settings{}, kNccl, kNccl + Settings{"data.last=exact"}}) {
    const int world = way.empty() ? 1 : 2;
    const Both runs(kSimplenet, kShortLast + way, world);
    check_same(runs.graph, runs.eager);
    for (int rank = 0; rank < world; ++rank) CHECK(replayed(runs.graph, rank) == Steps{4, 6, 7, 8, 9});
  }
}

TEST_CASE("random numbers continue from replay to replay, and in a resumed run") {
  std::string config = kSimplenet;
  config.replace(config.find("simplenet"), 9,
                 build_dir() + "/tests/fakes/models/libddprun_model_dropnet.so");
  for (const Settings& way : {Settings{}, kNccl}) {
    const int world = way.empty() ? 1 : 2;
    Runs runs(config);
    const Trained eager = runs.on_gpus(way, world);
    const Trained whole = runs.on_gpus(way + kGraph, world);
    check_same(whole, eager);
    const Trained first = runs.on_gpus(way + kGraph + Settings{"train.epochs=1"}, world);
    const Trained second = runs.on_gpus(way + kGraph + Settings{"checkpoint.resume=" + first.run.string()}, world);
    CHECK((second.weights == whole.weights));
    CHECK(replayed(second) == from_to(14, 20));  // its first three steps are not
  }
}

TEST_CASE("a run resumes with a graph or without, with Adam's step count") {
  Runs runs(kSimplenet);
  const Settings adam = {"optimizer.name=adam"}, half = adam + Settings{"train.epochs=1"};
  const Trained whole = runs.on_gpus(adam);
  for (const bool graph_first : {true, false}) {
    const Trained first = runs.on_gpus(graph_first ? half + kGraph : half);
    const Settings resume = adam + Settings{"checkpoint.resume=" + first.run.string()};
    CHECK((runs.on_gpus(graph_first ? resume : resume + kGraph).weights == whole.weights));
  }
}

TEST_CASE("replicas are compared between replays") {
  const Both runs(kSimplenet, kNccl + Settings{"strategy.hash_every=2"}, 2);
  check_same(runs.graph, runs.eager);
}

TEST_CASE("the final table separates graph time from the parts that it replaces") {
  Runs runs(kSimplenet);
  const auto graph = runs.start_on_gpus(kNccl + kGraph);
  CHECK(contains(graph.out, "  CUDA graph"));
  CHECK(summary_of(runs.place().new_run()).contains("split.graph"));
  CHECK_FALSE(contains(runs.start_on_gpus(kNccl).out, "CUDA graph"));
}

TEST_CASE("a rank that is killed or stopped while graphs are replayed ends the job with 5, and nothing is left") {
  check_lost_rank(kOnGpu + kNccl + kGraph + Settings{"comm.timeout=20s"});
}

// Rank 1 waits for a sample of step 7 that never arrives, and rank 0's graph waits for rank 1.
TEST_CASE("a graph that waits for a peer ends at comm.timeout") {
  const std::string stalling = R"(
[launch]
threads = 1
[model]
name = "linear"
[data]
name = ")" + build_dir() +
                               R"(/tests/fakes/gpu/libddprun_dataset_stalling.so"
batch_size = 24
shuffle = false
options = { samples = 240, at = 145 }
[train]
evaluate = false
)";
  Runs runs(stalling);
  const auto result = runs.start_on_gpus(kNccl + kGraph + Settings{"comm.timeout=5s"});
  CHECK(result.code == 5);
  CHECK_MESSAGE(contains(last_line(result.err),
                         "step 7 phase graph: the CUDA graph of a step has not ended within 5000 ms: a rank that hangs "
                         "or is gone, or a step that takes longer than comm.timeout; rank 1 was in step 7 phase data"),
                result.err);
  CHECK(runs.place().leftovers().empty());
}

TEST_CASE("a loss that is NaN is reported with the replayed step") {
  Runs runs(kSimplenet);
  const Settings diverging = {"optimizer.lr=1e6", "train.warmup=10000", "train.steps=100000", "optimizer.momentum=0.9"};
  const auto graph = runs.start_on_gpus(kGraph + diverging), eager = runs.start_on_gpus(diverging);
  CHECK(graph.code == 1);
  CHECK_MESSAGE(contains(last_line(graph.err), "phase forward: the loss is "), graph.err);
  CHECK(contains(last_line(eager.err), "phase forward: the loss is "));
}

TEST_CASE("settings that cannot be recorded are refused before anything starts") {
  Runs runs(kSimplenet);
  const std::string place = "--set train.cuda_graph=true: train.cuda_graph = true: ";
  const auto blocking = runs.start_on_gpus(kGloo + kGraph + Settings{"comm.stage_through_host=true"});
  CHECK(blocking.code == 2);
  CHECK_MESSAGE(last_line(blocking.err) == place +
                                               "needs a backend whose collectives can be part of a CUDA graph, and "
                                               "those of \"gloo\" cannot; use comm.backend = \"nccl\", or set it to "
                                               "false",
                blocking.err);
  const auto parts = runs.start_on_gpus(kDp + kGraph);
  CHECK(parts.code == 2);
  CHECK(contains(parts.err, place + "is for strategies \"single\" and \"ddp\""));
}

TEST_CASE("a missing or incomplete library is exit code 3") {
  Runs runs(kSimplenet);
  const std::filesystem::path folder = runs.place().folder() / "broken";
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "libddprun_cuda_graph.so") << "no library";
  const auto result = runs.start_on_gpus(
      kGraph, {"LD_LIBRARY_PATH=" + folder.string() + ":" + build_dir() + "/tests/fakes/cuda"});
  CHECK(result.code == 3);
  CHECK_MESSAGE(contains(last_line(result.err),
                         "--set train.cuda_graph=true: train.cuda_graph = true: this ddprun has "
                         "no CUDA graphs: " +
                             folder.string()),
                result.err);
  CHECK(contains(last_line(result.err), "or set it to false"));
}

}  // namespace
