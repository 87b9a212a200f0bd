#include "tools/predict/recording.hpp"

#include <doctest/doctest.h>

#include "support/error_of.hpp"
#include "support/read_file.hpp"
#include "support/text.hpp"
#include "tools/predict/inputs.hpp"

using namespace ddprun;
using namespace ddprun::testing;
using predict::read_recording;

TEST_CASE("a recording has the parts of steps, and when buckets are full") {
  const TempDir folder;
  const auto recording = read_recording(write_traced_run(folder));
  CHECK(recording.name == "simplenet, mnist");
  CHECK(recording.samples == 32);
  CHECK(recording.is_checked);
  CHECK(recording.steps.size() == 17);  // without 1, 2, and 5, which was traced
  CHECK(recording.steps[0].forward == doctest::Approx(0.002));
  CHECK(recording.steps[0].backward == doctest::Approx(0.004));
  CHECK(recording.steps[0].optimizer == doctest::Approx(0.001));  // with the rest, without the wait for others
  REQUIRE(recording.buckets.size() == 2);
  CHECK(recording.buckets[0].bytes == 1 << 20);
  CHECK(recording.buckets[0].remaining == doctest::Approx(0.5));
  CHECK(recording.buckets[1].remaining == doctest::Approx(0));
}

TEST_CASE("comm.check is that of the run") {
  const TempDir folder;
  const std::string path = write_traced_run(folder);
  folder.write("run/config.toml", std::string(kConfig) + "check = \"off\"\n");
  CHECK_FALSE(read_recording(path).is_checked);
}

TEST_CASE("the slowest rank of each step counts") {
  const TempDir folder;
  SomeRun run = traced_run();
  int64_t written = 0;
  run.change = [&, change = run.change](record::StepRecord& step) {
    change(step);
    if (++written > run.steps) step.backward += 0.001, step.total += 0.001;  // rank 1
  };
  const auto recording = read_recording(write_traced_run(folder, run));
  CHECK(recording.steps[0].backward == doctest::Approx(0.005));
}

TEST_CASE("with accumulation, buckets are full in the last of several backwards") {
  const TempDir folder;
  const std::string path = write_traced_run(folder);
  auto events = traced_step(0, 5);
  events.insert(events.begin(), event("backward", 0, 5, 500, 1500));
  write_trace(folder, "run", events);
  CHECK(read_recording(path).buckets[0].remaining == doctest::Approx(0.25));
}

TEST_CASE("the trace of a PyTorch program says how large a bucket is when it is full, and nothing of allreduces") {
  const TempDir folder;
  const std::string path = write_traced_run(folder);
  write_trace(
      folder, "run",
      {event("backward", 0, 5, 2000, 6000), event("ready", 0, 5, 5000, 5000, {{"bucket", 0}, {"bytes", 4096}})});
  const auto recording = read_recording(path);
  REQUIRE(recording.buckets.size() == 1);
  CHECK(recording.buckets[0].bytes == 4096);
  CHECK(recording.buckets[0].remaining == doctest::Approx(0.25));
}

TEST_CASE("a run that cannot be replayed is refused with the reason") {
  const TempDir folder;
  const auto error = [](const std::string& path) { return error_of([&] { read_recording(path); }); };
  CHECK(error("nowhere") == "2: nowhere: no folder of a run; give the run folder, which a training names at its end");
  SomeRun single = traced_run();
  single.summary.strategy = "single";
  CHECK(contains(error(write_traced_run(folder, single)),
                 "run: strategy \"single\" sends no gradients; record a run with"));
  const std::string with_zero = write_traced_run(folder);
  folder.write("run/config.toml",
               "[strategy]\nkind = \"ddp\"\nzero = 1\n[model]\nname = \"simplenet\"\n[data]\nname = "
               "\"mnist\"\n[comm]\nbackend = \"gloo\"\n");
  CHECK(contains(error(with_zero), "run: strategy.zero sends parameters after the optimizer"));
  SomeRun few = traced_run();
  few.steps = 12;
  CHECK(contains(error(write_traced_run(folder, few)),
                 "run: has 9 steps that count, without the first 2 and the traced"));
  const std::string uneven = write_traced_run(folder);
  const std::string steps = read_file(folder.path() / "run" / "steps-rank1.jsonl");
  folder.write("run/steps-rank1.jsonl", steps.substr(0, steps.rfind('\n', steps.size() - 2) + 1));
  CHECK(contains(error(uneven), "run: has ranks with different numbers of steps"));
  const std::string path = write_traced_run(folder);
  auto events = traced_step(0, 5);
  std::erase_if(events, [](const json& one) { return one.at("name") == "ready"; });
  write_trace(folder, "run", events);
  CHECK(contains(error(path), "run: the trace does not say when buckets were full"));
  write_trace(folder, "run", traced_step(0, 1));
  CHECK(contains(error(path), "trace a step after the second one"));
  std::filesystem::remove(folder.path() / "run" / "trace" / "trace.json");
  CHECK(contains(error(path), "run: has no trace of a step; record the run with --set log.trace_steps="));
}
