// The features of a step, in runs of the program: the files in the run folder, and that the model learns.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"

using namespace ddprun::e2e;
using ddprun::testing::contains;
using nlohmann::json;

namespace {

// Ten steps of 24 samples.
const std::string kSimplenet = R"(
[strategy]
kind = "ddp"
bucket_cap_mb = 0.004  # two buckets
[launch]
nproc = 2
threads = 1
[model]
name = "simplenet"
[data]
name = "synthetic"
batch_size = 24
options = { shape = "1x28x28", classes = 10, samples = 240, test_samples = 48 }
[optimizer]
lr = 0.05
)";

std::filesystem::path run(Workplace& place, const std::vector<std::string>& overrides) {
  const auto result = place.run(place.training(place.config(kSimplenet), overrides));
  INFO(result.err);
  REQUIRE(result.code == 0);
  return place.new_run();
}

std::vector<json> named(const json& events, const std::string& name, int rank) {
  std::vector<json> found;
  for (const json& event : events) {
    if (event.at("name") == name && event.at("pid") == rank) found.push_back(event);
  }
  return found;
}

double end_of(const json& event) {
  return event.at("ts").get<double>() + event.at("dur").get<double>();
}

}  // namespace

TEST_CASE("a run on the CPU loads neither LibTorch's CUDA libraries nor CUDA's own nor the driver") {
  Workplace place;
  Job job(place, place.training(place.config(kSimplenet), {"train.epochs=100000"}));
  job.wait_for_steps();
  for (const auto& [rank, pid] : job.ranks(2)) {
    const auto files = mapped_files(pid, "/");
    CHECK(std::any_of(files.begin(), files.end(),
                      [](const std::string& file) { return contains(file, "libtorch_cpu"); }));
    for (const std::string& file : files) {
      // libtorch_cpu.so itself needs the small libcudart.
      for (const char* library : {"libtorch_cuda", "libcuda.so", "libcublas", "libcudnn", "libnccl"}) {
        CHECK_MESSAGE(!contains(file, library), "rank ", rank, " has mapped ", file);
      }
    }
  }
  job.launcher().send(SIGTERM);
  CHECK(job.launcher().wait().code == 143);
}

TEST_CASE("micro-batches give the results of the whole batch, on two ranks") {
  Workplace place;
  const auto whole = run(place, {});
  const auto cut = run(place, {"train.accumulate=5"});
  CHECK(distance(weights_of(whole), weights_of(cut)) < 1e-5);
  CHECK(distance(losses_of(whole, 2), losses_of(cut, 2)) < 1e-5);
  CHECK(summary_of(cut).at("steps") == 10);
}

TEST_CASE("the learning rate of each step is in its record") {
  Workplace place;
  const auto steps = steps_of(run(place, {"train.schedule=cosine", "train.warmup=4", "train.clip_norm=1"}), 1);
  CHECK(steps.at(0).at("lr").get<double>() == doctest::Approx(0.0125));
  CHECK(steps.at(3).at("lr").get<double>() == doctest::Approx(0.05));
  CHECK(steps.at(7).at("lr").get<double>() == doctest::Approx(0.025));
  const auto result = place.run(place.training(place.config(kSimplenet), {"train.warmup=10"}));
  CHECK(result.code == 2);
  CHECK(result.err.find("train.warmup = 10: leaves nothing of the run, which has 10 steps") != std::string::npos);
}

TEST_CASE("half precision learns, and fp16's scale is in the records of all ranks") {
  Workplace place;
  const auto plain = summary_of(run(place, {"train.epochs=3"}));
  for (const std::string amp : {"bf16", "fp16"}) {
    CAPTURE(amp);
    const auto folder = run(place, {"train.epochs=3", "train.amp=" + amp});
    CHECK(summary_of(folder).at("train.loss").get<double>() ==
          doctest::Approx(plain.at("train.loss").get<double>()).epsilon(0.05));
    CHECK(steps_of(folder, 0).at(5).contains("scale") == (amp == "fp16"));
    if (amp == "bf16") continue;
    const auto first = steps_of(folder, 0), second = steps_of(folder, 1);
    for (std::size_t step = 0; step < first.size(); ++step) {
      CHECK(first[step].at("scale") == second[step].at("scale"));
      CHECK(first[step].at("skipped") == second[step].at("skipped"));
    }
  }
}

TEST_CASE("a run that ends early reports it") {
  Workplace place;
  const auto folder =
      run(place, {"train.epochs=9", "train.early_stop=train.loss", "train.min_delta=100", "train.patience=2"});
  CHECK(summary_of(folder).at("stopped") == "early_stop");
  CHECK(summary_of(folder).at("epochs") == 3);
}

TEST_CASE("the summary reports the allreduced bytes: four for every parameter") {
  Workplace place;
  const json summary = summary_of(run(place, {}));
  CHECK(summary.at("comm.bytes") == 4 * (784 * 256 + 256 + 256 * 10 + 10));
  CHECK(summary.at("comm.busbw").get<double>() > 0);
}

TEST_CASE("parity records of both ranks agree") {
  Workplace place;
  const auto folder = run(place, {"log.parity_steps=2"});
  const auto first = json_lines(folder / "parity-rank0.jsonl"), second = json_lines(folder / "parity-rank1.jsonl");
  REQUIRE(first.size() == 2 * 4);
  for (std::size_t i = 0; i < first.size(); ++i) {
    CHECK(first[i].at("gradient").at("hash") == second[i].at("gradient").at("hash"));
    CHECK(first[i].at("value") == second[i].at("value"));
  }
  CHECK(first[0].at("elements") == 784 * 256);
}

TEST_CASE("a trace has both ranks' chosen steps on one clock") {
  Workplace place;
  const auto folder = run(place, {"log.trace_steps=[3, 5]"});
  const json events = json::parse(ddprun::testing::read_file(folder / "trace" / "trace.json")).at("traceEvents");
  double begins = 0, ends = 1e300;
  for (const int rank : {0, 1}) {
    CAPTURE(rank);
    const auto steps = named(events, "step 5", rank);
    REQUIRE(steps.size() == 1);
    CHECK(named(events, "process_name", rank).at(0).at("args").at("name") == "rank " + std::to_string(rank));
    begins = std::max(begins, steps[0].at("ts").get<double>());
    ends = std::min(ends, end_of(steps[0]));
    for (const std::string name : {"forward", "backward", "optimizer", "allreduce"}) {
      CAPTURE(name);
      int of_step = 0;
      for (const json& event : named(events, name, rank)) {
        if (event.at("args").at("step") != 5) continue;
        ++of_step;
        CHECK(event.at("ts").get<double>() >= steps[0].at("ts").get<double>());
        CHECK(end_of(event) <= end_of(steps[0]) + 0.001);
      }
      CHECK(of_step == (name == "allreduce" ? 2 : 1));
    }
    CHECK(named(events, "step 4", rank).empty());
  }
  CHECK(begins < ends);  // the two ranks' steps overlap in time

  CHECK_FALSE(std::filesystem::exists(run(place, {}) / "trace"));
  const auto result = place.run(place.training(place.config(kSimplenet), {"log.trace_steps=[11]"}));
  CHECK(result.code == 2);
  CHECK(result.err.find("the run has only 10 steps") != std::string::npos);
}
