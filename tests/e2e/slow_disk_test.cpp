// A disk that is slower than a collective's timeout makes a run slower, but does not fail it.
#include <doctest/doctest.h>
#include <fcntl.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;
using namespace std::chrono_literals;

namespace {

const std::string kShort = R"(
[launch]
nproc = 2
threads = 1
[comm]
timeout = "2s"
[strategy]
kind = "ddp"
[model]
name = "linear"
[data]
name = "linear"
batch_size = 32
workers = 0
options = { samples = 320, test_samples = 64 }
[train]
epochs = 1
[checkpoint]
best = "test.loss"
)";

std::vector<std::string> with_slow_disk(int rank, const std::vector<std::string>& argv) {
  std::vector<std::string> command = {"/usr/bin/env", std::string("LD_PRELOAD=") + SLOW_DISK,
                                      "DDPRUN_SLOW_DISK_RANK=" + std::to_string(rank), "DDPRUN_SLOW_DISK_MS=1250"};
  command.insert(command.end(), argv.begin(), argv.end());
  return command;
}

// In one step: rank 0 writes into the folder at any time, and would create it again if it were missing for a moment.
void put_file_in_place_of(const std::filesystem::path& folder) {
  const auto file = folder.parent_path() / "file";
  std::ofstream(file).put('\n');
  REQUIRE(renameat2(AT_FDCWD, file.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0);
}

TEST_CASE(
    "the other ranks wait for a rank with a disk slower than comm.timeout, and it reports this, also when it resumes") {
  for (const int slow : {0, 1}) {
    CAPTURE(slow);
    Workplace place;
    const std::string config = place.config(kShort);
    const auto result = place.run(with_slow_disk(slow, place.training(config)));
    CHECK_MESSAGE(result.code == 0, result.err);
    CHECK_MESSAGE(contains(result.err, "rank " + std::to_string(slow) +
                                           " has been saving a checkpoint for longer than comm.timeout"),
                  result.err);
    const auto run = place.new_run();
    REQUIRE(commits_of(run).size() == 1);
    const auto resumed = place.run(
        with_slow_disk(slow, place.training(config, {"train.epochs=2", "checkpoint.resume=" + run.string()})));
    CHECK_MESSAGE(resumed.code == 0, resumed.err);
    CHECK(commits_of(place.new_run()).back().step == 20);
  }
}

TEST_CASE("a rank that is killed while its disk keeps the others waiting is reported") {
  Workplace place;
  Job job(place, with_slow_disk(0, place.training(place.config(kShort), {"train.epochs=1000", "log.every=1"})));
  const std::string waiting = "rank 0 has been saving a checkpoint";
  REQUIRE(eventually([&] { return contains(job.launcher().err(), waiting); }, 60s));
  kill(job.ranks(2).at(0), SIGKILL);
  const auto result = job.launcher().wait();
  CHECK(result.code == 5);
  CHECK_MESSAGE(contains(last_line(result.err), "ddprun: failed: rank 0 ("), result.err);
  CHECK_MESSAGE(contains(last_line(result.err), "killed by signal 9"), result.err);
}

TEST_CASE("a checkpoint that fails is reported in one line, once") {
  Workplace place;
  const auto argv = place.training(place.config(kShort), {"train.epochs=1000", "checkpoint.keep=1"});
  Job job(place, argv);
  REQUIRE(eventually([&] { return contains(job.launcher().err(), "epoch 3 done"); }, 60s));
  const auto folder = place.new_run() / "checkpoints";
  put_file_in_place_of(folder);
  const auto result = job.launcher().wait();
  CHECK(result.code == 1);
  CHECK_MESSAGE(contains(last_line(result.err), folder.string()), result.err);
  CHECK_MESSAGE(contains(last_line(result.err), "phase checkpoint"), result.err);
  CHECK(result.err.find("failed:") == result.err.rfind("failed:"));
}

}  // namespace
