// The config's table [faults]: a rank makes a fault on purpose, and the job ends as it does for a real one.
#include <doctest/doctest.h>

#include <regex>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

const std::string kConfig = R"(
[strategy]
kind = "ddp"
bucket_cap_mb = 0.001
[launch]
nproc = 3
threads = 1
[model]
name = "simplenet"
options = { hidden = 32 }
[data]
name = "synthetic"
batch_size = 24
options = { shape = "1x28x28", classes = 10, samples = 240, test_samples = 24 }
[train]
epochs = 2
[checkpoint]
every_steps = 2
[faults]
rank = 1
step = 7
)";

std::string how_to_resume(const std::string& run) {
  return "\nto resume: repeat the command with --set checkpoint.resume=" + run;
}

struct Failure {
  std::string kind;
  int code;
  std::string last_line;  // as a regular expression
  std::string also = "train.epochs=2";
};

TEST_CASE("each fault ends the job with its exit code, and the last line says what the rank did") {
  const std::string failed = "ddprun: failed: rank \\d \\(.+, pid \\d+\\) step 7 phase ";
  const std::string one = "ddprun: failed: rank 1 \\(.+, pid \\d+\\) step 7 phase ";
  const std::string swapped =
      failed +
      "allreduce bucket 0: .*: mismatch: ranks 0 and 2 called (allreduce .*), bucket 0\\), rank 1 called \\1, "
      "bucket 1\\)";
  const std::vector<Failure> failures = {
      {"kill", 5, one + "forward: killed by signal 9 \\(SIGKILL\\)"},
      {"stop", 5, one + "forward: stopped by a signal and not continued; killed"},
      {"throw", 1, one + "forward: faults.kind = \"throw\": .*"},
      {"nan_gradient", 1, failed + "\\w+( bucket \\d+)?: the gradient of fc1\\.weight is nan; .*"},
      {"drop", 5, failed + "allreduce bucket \\d: .*: mismatch: ranks 0 and 2 called allreduce .*, rank 1 called .*"},
      {"shape", 5, failed + "allreduce bucket 0: .*: mismatch: ranks 0 and 2 called allreduce .*, rank 1 called .*"},
      {"dtype", 5, failed + "allreduce bucket 0: .*: mismatch: .*float32.*, rank 1 called allreduce .*int32.*"},
      {"op", 5, failed + "allreduce bucket 0: .*: mismatch: .* sum.*, rank 1 called allreduce .* max.*"},
      {"order", 5, swapped},
      {"order", 5, swapped, "strategy.compression=fp16"},
  };
  for (const Failure& failure : failures) {
    CAPTURE(failure.kind);
    Workplace place;
    const auto result = place.run(place.training(place.config(kConfig), {"faults.kind=" + failure.kind, failure.also}));
    CHECK(result.code == failure.code);
    CHECK_MESSAGE(std::regex_match(last_line(result.err), std::regex(failure.last_line)), result.err);
    const auto run = place.new_run();
    CHECK(commits_of(run).back().step == 6);
    CHECK_MESSAGE(contains(result.err, how_to_resume(run) + "\nddprun: failed: "), result.err);
    // A record of collectives says nothing about a failure of one rank. After the end of a rank, the others name theirs
    // only if they notice it before the launcher ends them.
    const bool rank_is_gone = failure.kind == "kill" || failure.kind == "stop" || failure.kind == "throw";
    if (!rank_is_gone) CHECK(contains(result.err, "where the ranks diverged") == (failure.code == 5));
    CHECK(place.leftovers().empty());
  }
}

TEST_CASE("a run of one process that fails after a checkpoint says how to resume before the error") {
  for (const char* kind : {"throw", "nan_gradient"}) {
    CAPTURE(kind);
    Workplace place;
    const auto result = place.run(place.training(
        place.config(kConfig), {std::string("faults.kind=") + kind, "strategy.kind=single", "faults.rank=0"}));
    CHECK(result.code == 1);
    CHECK_MESSAGE(contains(result.err, how_to_resume(place.new_run()) + "\nddprun: failed: "), result.err);
  }
  Workplace place;
  const auto early = place.run(place.training(place.config(kConfig), {"faults.kind=throw", "faults.step=1"}));
  CHECK(early.code == 1);
  CHECK_FALSE(contains(early.err, "to resume"));  // there is no checkpoint
}

TEST_CASE("a run of one process that crashes shows its stack") {
  // A crash has two seconds to report, which a busy machine may exceed, but rarely three times.
  std::string said;
  for (int attempt = 0; attempt < 3 && !contains(said, "crashed with SIGSEGV"); ++attempt) {
    Workplace place;
    Job job(place, place.training(place.config(kConfig), {"strategy.kind=single", "train.epochs=100000"}));
    job.wait_for_steps();
    job.launcher().send(SIGSEGV);
    said = job.launcher().wait().err;
  }
  CHECK_MESSAGE(contains(said, "crashed with SIGSEGV"), said);
}

TEST_CASE("of a rank that hangs, the innermost functions are shown, and the whole stack is in its log") {
  Workplace place;
  const auto result =
      place.run(place.training(place.config(kConfig), {"faults.kind=spin", "launch.nproc=2", "comm.timeout=\"9s\""}));
  CHECK(result.code == 5);
  const std::string log = (place.new_run() / "rank1.log").string();
  CHECK_MESSAGE(contains(result.err, "its training thread is in:\n[rank1]   #0 "), result.err);
  CHECK(contains(result.err, "spin_for_ever"));
  CHECK_MESSAGE(contains(result.err, "more, in " + log), result.err);
  CHECK_FALSE(contains(result.err, "  #8 "));
  CHECK(contains(read_file(log), "\n  #8 "));
}

TEST_CASE("after a restart the fault does not come back, and the run ends with the weights of one without it") {
  Workplace place;
  REQUIRE(place.run(place.training(place.config(kConfig))).code == 0);
  const auto whole = place.new_run();
  const auto result = place.run(place.training(place.config(kConfig), {"faults.kind=kill", "launch.max_restarts=1"}));
  REQUIRE_MESSAGE(result.code == 0, result.err);
  std::filesystem::path newest;  // of the two starts
  for (const auto& run : std::filesystem::directory_iterator(place.runs())) newest = std::max(newest, run.path());
  CHECK(commits_of(newest).back().step == commits_of(whole).back().step);
  CHECK(weights_of(newest) == weights_of(whole));
}

TEST_CASE("a slow rank changes no result, and a step that is left out is recorded") {
  Workplace place;
  const std::string seconds = "faults.seconds=0.001";
  REQUIRE(place.run(place.training(place.config(kConfig))).code == 0);
  const Weights whole = weights_of(place.new_run());
  REQUIRE(place.run(place.training(place.config(kConfig), {"faults.kind=slow", seconds})).code == 0);
  CHECK(weights_of(place.new_run()) == whole);
  const auto skipped =
      place.run(place.training(place.config(kConfig), {"faults.kind=nan_gradient", "train.check_gradients=skip"}));
  CHECK(skipped.code == 0);
  CHECK_MESSAGE(contains(skipped.err, "step 7: the gradient of fc1.weight is nan; the optimizer leaves out this step"),
                skipped.err);
  const auto steps = steps_of(place.new_run(), 0);
  REQUIRE(steps.size() == 20);
  for (const auto& step : steps) CHECK(step.contains("skipped") == (step.at("step") == 7));
}

}  // namespace
