#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "record/recorder.hpp"
#include "record/run_dir.hpp"
#include "support/error_of.hpp"
#include "support/read_file.hpp"
#include "support/text.hpp"
#include "testing/temp_dir.hpp"

using namespace ddprun;
using namespace ddprun::testing;
using nlohmann::json;

namespace {

record::StepRecord step_number(int64_t step) {
  record::StepRecord record;
  record.step = step;
  return record;
}

}  // namespace

TEST_CASE("steps are written to the file when their epoch ends") {
  const TempDir run;
  record::Recorder recorder(run.path(), 0);
  recorder.step(step_number(1));
  recorder.step(step_number(2));
  recorder.epoch({});
  const auto lines = read_lines(run.path() / "steps-rank0.jsonl");
  REQUIRE(lines.size() == 2);
  CHECK(json::parse(lines[1]).at("step") == 2);
  CHECK(read_lines(run.path() / "epochs.jsonl").size() == 1);
}

TEST_CASE(
    "another rank goes on with the epochs, each of which is there once, and a process with the steps of another") {
  const TempDir run;
  record::EpochRecord first, second;
  first.epoch = 1;
  second.epoch = 11;
  {
    record::Recorder dead(run.path(), 0);
    dead.step(step_number(1));
    dead.epoch(first);
  }
  record::Recorder other(run.path(), 1), successor(run.path(), 0, true);
  other.lead(true);
  other.epoch(first);
  other.epoch(second);
  other.lead(false);
  other.epoch({});
  successor.step(step_number(2));
  successor.epoch({});
  successor.summary({});
  const auto epochs = read_lines(run.path() / "epochs.jsonl");
  REQUIRE(epochs.size() == 2);
  CHECK(json::parse(epochs[1]).at("epoch") == 11);
  CHECK(read_lines(run.path() / "steps-rank0.jsonl").size() == 2);
  CHECK_FALSE(std::filesystem::exists(run.path() / "summary.json"));
}

TEST_CASE("steps are written to the file once a second, so that a run can be watched") {
  const TempDir run;
  record::Recorder recorder(run.path(), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  recorder.step(step_number(1));
  CHECK(read_lines(run.path() / "steps-rank0.jsonl").size() == 1);
}

TEST_CASE("more steps than the buffer holds are written in order, each once") {
  const TempDir run;
  {
    record::Recorder recorder(run.path(), 3);
    for (int64_t step = 1; step <= 10'000; ++step) recorder.step(step_number(step));
    CHECK(std::filesystem::file_size(run.path() / "steps-rank3.jsonl") > 0);
  }
  const auto lines = read_lines(run.path() / "steps-rank3.jsonl");
  REQUIRE(lines.size() == 10'000);
  int64_t expected = 0;
  for (const std::string& line : lines) {
    if (json::parse(line).at("step") != ++expected) FAIL("line " << expected << " is " << line);
  }
}

TEST_CASE("only rank 0 writes epochs and the summary") {
  const TempDir run;
  record::Recorder recorder(run.path(), 1);
  recorder.epoch({});
  recorder.summary({});
  CHECK(std::filesystem::exists(run.path() / "steps-rank1.jsonl"));
  CHECK_FALSE(std::filesystem::exists(run.path() / "epochs.jsonl"));
  CHECK_FALSE(std::filesystem::exists(run.path() / "summary.json"));
}

TEST_CASE("a rank that leads writes the line of an epoch that it has from another rank, once") {
  const TempDir run;
  record::Recorder recorder(run.path(), 1);
  const std::string line = R"({"epoch":7,"train_loss":0.5})";
  recorder.epoch_line(line);
  recorder.lead(true);
  recorder.epoch_line("");
  recorder.epoch_line(line);
  recorder.epoch_line(line);
  CHECK(read_file(run.path() / "epochs.jsonl") == line + "\n");
}

TEST_CASE("the summary leaves no temporary file in its folder") {
  const TempDir run;
  record::Recorder recorder(run.path(), 0);
  record::Summary summary;
  summary.world = 2;
  recorder.summary(summary);
  CHECK(json::parse(read_file(run.path() / "summary.json")).at("world") == 2);
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(run.path())) ++files;
  CHECK(files == 3);
}

TEST_CASE("a missing run folder is reported immediately with its path") {
  const TempDir run;
  const std::string error = error_of([&] { record::Recorder(run.path() / "gone", 0); });
  CHECK(error.starts_with("1: "));
  CHECK(contains(error, (run.path() / "gone/steps-rank0.jsonl").string() + ": No such file or directory"));
}

TEST_CASE("a full disk is reported once, with the path, and does not end the program") {
  const TempDir run;
  std::filesystem::create_symlink("/dev/full", run.path() / "steps-rank1.jsonl");
  std::optional<record::Recorder> recorder(std::in_place, run.path(), 1);
  recorder->step(step_number(1));
  const std::string error = error_of([&] { recorder->flush(); });
  CHECK(error.starts_with("1: "));
  CHECK(contains(error, "steps-rank1.jsonl: No space left on device"));
  CHECK_NOTHROW(recorder->flush());  // the failed write is not repeated
  recorder->step(step_number(2));
  recorder.reset();  // the destructor logs
}
