#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "ddprun/error.hpp"
#include "record/recorder.hpp"
#include "record/run_dir.hpp"
#include "support/error_of.hpp"
#include "support/read_file.hpp"
#include "support/text.hpp"
#include "testing/temp_dir.hpp"
#include "tools/lib/run.hpp"

using namespace ddprun;
using namespace ddprun::record;
using namespace ddprun::tools;
using testing::contains;
using testing::TempDir;

namespace {

StepRecord some_step(int64_t number) {
  StepRecord step;
  step.step = number;
  step.samples = 32;
  step.loss = 0.1 + static_cast<double>(number) / 3;
  step.data = 0.001;
  step.comm = 0.25;
  step.total = 1.0 / 7;
  step.lr = 0.05;
  return step;
}

Summary some_summary() {
  Summary summary;
  summary.total_time = 12.5;
  summary.split.comm = 0.01;
  summary.world = 2;
  summary.batch = 64;
  summary.backend = "gloo";
  summary.memory_by_device = {10, 20};
  summary.learned = {{"weight", 2.5}};
  return summary;
}

// Writes a run of two ranks as a training run does.
void write_run(const TempDir& dir) {
  dir.write("config.toml", "[model]\n");
  dir.write("environment.json", R"({"host": "here", "cores": 2})");
  for (int rank = 1; rank >= 0; --rank) {
    Recorder recorder(dir.path(), rank);
    recorder.step(some_step(1));
    recorder.step(some_step(2));
    EpochRecord epoch;
    epoch.train_loss = 0.5;
    epoch.per_rank_loss = {0.25, kAbsent};
    recorder.epoch(epoch);
    recorder.summary(some_summary());
  }
}

std::string error_in(const TempDir& dir) {
  return testing::error_of([&] { read_run(dir.path().string()); });
}

}  // namespace

TEST_CASE("a recorded run reads back") {
  const TempDir dir;
  write_run(dir);
  const Run run = read_run(dir.path().string());
  REQUIRE(run.steps.size() == 2);
  REQUIRE(run.steps[1].size() == 2);
  CHECK(run.steps[1][1].step == 2);
  CHECK(run.steps[1][1].loss == some_step(2).loss);
  CHECK(run.steps[1][1].total == 1.0 / 7);
  CHECK(run.steps[1][1].lr == 0.05);
  CHECK(std::isnan(run.steps[1][1].scatter));
  CHECK(run.steps[1][1].skipped == -1);
  REQUIRE(run.epochs.size() == 1);
  CHECK(run.epochs[0].train_loss == 0.5);
  REQUIRE(run.epochs[0].per_rank_loss.size() == 2);
  CHECK(std::isnan(run.epochs[0].per_rank_loss[1]));
  CHECK(run.summary.split.comm == 0.01);
  CHECK(run.summary.batch == 64);
  CHECK(run.summary.backend == "gloo");
  CHECK(run.summary.memory_by_device == std::vector<int64_t>{10, 20});
  CHECK(std::isnan(run.summary.test_accuracy));
  REQUIRE(run.summary.learned.size() == 1);
  CHECK(run.summary.learned[0] == std::pair<std::string, double>("weight", 2.5));
  CHECK(run.environment.at("host") == "here");
  CHECK(run.environment.at("cores") == "2");
  CHECK(is_run(dir.path()));
}

TEST_CASE("GPU records read back by rank, and a run on CPUs has none") {
  const TempDir dir;
  write_run(dir);
  CHECK(read_gpus(dir.path(), 2).empty());
  for (int rank = 0; rank < 2; ++rank) {
    Recorder recorder(dir.path(), rank);
    GpuRecord gpu;
    gpu.step = 50;
    gpu.device = rank;
    gpu.allocated = 1 << 20;
    recorder.gpu(gpu);
    gpu.step = 100;
    gpu.reserved = 2 << 20;
    recorder.gpu(gpu);
  }
  CHECK(testing::read_file(dir.path() / "gpus-rank1.jsonl") ==
        "{\"step\":50,\"device\":1,\"allocated\":1048576}\n"
        "{\"step\":100,\"device\":1,\"allocated\":1048576,\"reserved\":2097152}\n");
  const auto gpus = read_gpus(dir.path(), 2);
  REQUIRE(gpus.size() == 2);
  REQUIRE(gpus[1].size() == 2);
  CHECK(gpus[1][1].reserved == 2 << 20);
  CHECK(gpus[1][0].reserved == -1);
  dir.write("gpus-rank0.jsonl", "{\"step\":50}\n");
  CHECK(contains(testing::error_of([&] { read_gpus(dir.path(), 2); }), "gpus-rank0.jsonl:1: "));
}

TEST_CASE("a killed run is distinguished from one that ended") {
  const TempDir dir;
  write_run(dir);
  SUBCASE("no summary") {
    std::filesystem::remove(dir.path() / "summary.json");
    CHECK_MESSAGE(contains(error_in(dir), "summary.json: missing: the run has not ended"), error_in(dir));
  }
  SUBCASE("a line cut short") {
    const std::string whole = testing::read_file(dir.path() / "steps-rank1.jsonl");
    dir.write("steps-rank1.jsonl", whole.substr(0, whole.size() - 9));
    CHECK_MESSAGE(contains(error_in(dir), "steps-rank1.jsonl:2: the line is cut short"), error_in(dir));
  }
  SUBCASE("a rank without its file") {
    std::filesystem::remove(dir.path() / "steps-rank1.jsonl");
    CHECK_MESSAGE(contains(error_in(dir), "steps-rank1.jsonl: No such file"), error_in(dir));
  }
}

TEST_CASE("a run without a summary is read up to the last step that all ranks have recorded") {
  const TempDir dir;
  write_run(dir);
  CHECK(read_run_so_far(dir.path()).has_summary);
  CHECK(state_of(read_run_so_far(dir.path())).empty());
  std::filesystem::remove(dir.path() / "summary.json");
  const std::string whole = testing::read_file(dir.path() / "steps-rank1.jsonl");
  dir.write("steps-rank1.jsonl", whole.substr(0, whole.size() - 9));  // as SIGKILL in the middle of a write leaves it
  dir.write("epochs.jsonl", testing::read_file(dir.path() / "epochs.jsonl") + "{\"epoch\":2,\"test.lo");
  const Run run = read_run_so_far(dir.path());
  CHECK_FALSE(run.has_summary);
  CHECK(state_of(run) == "the run is under way or ended without a summary: its figures go to step 1");
  REQUIRE(run.steps.size() == 2);
  CHECK(run.steps[0].size() == 1);
  CHECK(run.steps[1].size() == 1);
  CHECK(run.epochs.size() == 1);
  CHECK(run.summary.world == 2);
  CHECK(run.summary.steps == 1);
  CHECK(run.summary.epochs == 1);
  CHECK(run.summary.train_loss == 0.5);
  CHECK(run.summary.avg_batch_time == some_step(1).total);
  CHECK(run.summary.split.comm == some_step(1).comm);
  CHECK(run.summary.throughput == doctest::Approx(64 / some_step(1).total));
}

TEST_CASE("a run that has just started has no steps") {
  const TempDir dir;
  dir.write("config.toml", "[model]\n");
  const Recorder recorder(dir.path(), 0);
  const Run run = read_run_so_far(dir.path());
  CHECK(state_of(run) == "the run is under way or ended without a summary: no step is recorded yet");
  CHECK(run.summary.world == 1);
  CHECK(std::isnan(run.summary.throughput));
}

TEST_CASE("a damaged line in the middle of a killed run's file is an error with its line") {
  const TempDir dir;
  write_run(dir);
  std::filesystem::remove(dir.path() / "summary.json");
  const std::string whole = testing::read_file(dir.path() / "steps-rank0.jsonl");
  dir.write("steps-rank0.jsonl", whole.substr(0, 20) + "\n" + whole);
  CHECK(contains(testing::error_of([&] { read_run_so_far(dir.path()); }),
                 "2: " + dir.path().string() + "/steps-rank0.jsonl:1: not JSON"));
}

TEST_CASE("a damaged file is named with its line") {
  const TempDir dir;
  write_run(dir);
  const auto error_with = [&](const std::string& file, const std::string& text) {
    dir.write(file, text);
    return error_in(dir);
  };
  CHECK(contains(error_with("epochs.jsonl", "{\"epoch\":1}\n{]\n"), "epochs.jsonl:2: not JSON (byte 2)"));
  CHECK(contains(error_with("epochs.jsonl", "{\"epoch\":1}\n7\n"), "epochs.jsonl:2: expected a JSON object"));
  CHECK(contains(error_with("epochs.jsonl", "{\"epoch\":\"1\"}\n"), "epochs.jsonl:1: \"epoch\": expected an integer"));
  CHECK(contains(error_with("epochs.jsonl", "{\"seconds\":1}\n"), "epochs.jsonl:1: \"epoch\" is missing"));
  dir.write("epochs.jsonl", "");
  CHECK(contains(error_with("summary.json", "{\"world\":2,\"total_time\":[]}"),
                 "summary.json: \"total_time\": expected a number"));
  CHECK(contains(error_with("summary.json", ""), "summary.json: not JSON"));
  CHECK(contains(testing::error_of([&] { read_run(dir.path() / "none"); }), "no folder of a run"));
}

TEST_CASE("keys of a later version are ignored") {
  const TempDir dir;
  write_run(dir);
  dir.write("epochs.jsonl", "{\"epoch\":3,\"test.f1\":{\"macro\":0.5}}\n");
  CHECK(read_run(dir.path().string()).epochs[0].epoch == 3);
}

TEST_CASE("parity records read back, and there are none unless configured") {
  const TempDir dir;
  CHECK(read_parity(dir.path(), 2).empty());
  ParityRecord record{2, "fc1.weight", 12, {"00ff00ff00ff00ff", 1.5, {1, -2.5}}, {"0123456789abcdef", 2, {3, 4}}};
  std::string lines = line_of(record) + '\n';
  record.step = 3;
  lines += line_of(record) + '\n';
  dir.write("parity-rank0.jsonl", lines);
  const auto ranks = read_parity(dir.path(), 1);
  REQUIRE(ranks.size() == 1);
  REQUIRE(ranks[0].size() == 2);
  CHECK(ranks[0][0].parameter == "fc1.weight");
  CHECK(ranks[0][0].gradient.hash == "00ff00ff00ff00ff");
  CHECK(ranks[0][0].value.sketch == std::vector<double>{3, 4});
  CHECK(ranks[0][1].step == 3);
  dir.write("parity-rank0.jsonl", "{\"step\":1,\"parameter\":\"w\",\"elements\":1,\"gradient\":{\"hash\":\"\"}}\n");
  CHECK(contains(testing::error_of([&] { read_parity(dir.path(), 1); }),
                 "parity-rank0.jsonl:1: gradient: \"norm\" is missing"));
}
