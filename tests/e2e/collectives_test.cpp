// The files with the last collectives of each rank: on SIGUSR2 and on failure, and what `ddprun report` says of them.
#include <doctest/doctest.h>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"
#include "support/paths.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

const std::string kEndless = R"(
[strategy]
kind = "ddp"
[launch]
nproc = 2
threads = 1
[model]
name = "simplenet"
options = { hidden = 32 }
[data]
name = "synthetic"
batch_size = 24
options = { shape = "1x28x28", classes = 10, samples = 480, test_samples = 48 }
[train]
epochs = 1000000
)";

fs::path file_of(const fs::path& run, int rank) {
  return run / ("collectives-rank" + std::to_string(rank) + ".json");
}

// The file of a rank; null until it exists.
nlohmann::json collectives_of(const fs::path& run, int rank) {
  return fs::exists(file_of(run, rank)) ? nlohmann::json::parse(read_file(file_of(run, rank))) : nlohmann::json();
}

void check_report(const Workplace& place, const fs::path& run) {
  const auto report = place.ddprun({"report", run.string()});
  CHECK(report.code == 0);
  CHECK(report.out == (run / "report.html").string() + "\n");
  CHECK_MESSAGE(contains(report.err, "Rank 1 has not started allreduce "), report.err);
  CHECK_MESSAGE(contains(report.err, ", which rank 0 started up to "), report.err);
  CHECK(contains(read_file(run / "report.html"), "Rank 1 has not started allreduce "));
}

TEST_CASE("SIGUSR2 to the launcher of a job that hangs: each rank writes its last collectives, and the job goes on") {
  Workplace place;
  Job job(place, place.training(place.config(kStalling), {"comm.timeout=10m", "log.every=5"}));
  job.wait_for_steps();
  const auto run = place.new_run();
  const auto hangs = [&] {
    job.launcher().send(SIGUSR2);
    const auto rank0 = collectives_of(run, 0), rank1 = collectives_of(run, 1);
    return !rank0.is_null() && !rank1.is_null() && rank0["calls"].back()["state"] == "started" &&
           rank0["calls"].back()["step"] == 7 && rank1["calls"].back()["step"] == 6 &&
           rank1["calls"].back()["state"] == "finished";  // the file may be older than rank 0's
  };
  REQUIRE(eventually(hangs, 60s));
  CHECK(is_alive(job.launcher().pid()));

  const auto rank0 = collectives_of(run, 0), rank1 = collectives_of(run, 1);
  CHECK(rank0["reason"] == "SIGUSR2");
  CHECK(rank0["backend"] == "gloo");
  CHECK(rank1["world"] == 2);
  const auto& waits = rank0["calls"].back();
  const auto& last = rank1["calls"].back();
  CHECK(waits["op"] == "allreduce");
  CHECK(waits["reduction"] == "sum");
  CHECK(last["state"] == "finished");
  CHECK(last["step"] == 6);
  CHECK(waits["number"] == last["number"].get<int64_t>() + 1);
  CHECK(last["start"].get<double>() < waits["start"].get<double>());
  for (int rank : {0, 1}) {  // the line follows the file
    const auto line =
        "ddprun: rank " + std::to_string(rank) + ": the last collectives are in " + file_of(run, rank).string();
    CHECK_MESSAGE(eventually([&] { return contains(job.launcher().err(), line); }, 60s), line);
  }
  check_report(place, run);

  job.launcher().send(SIGTERM);
  job.launcher().send(SIGTERM);
  job.launcher().wait();
  CHECK(place.leftovers().empty());
}

TEST_CASE("a job that fails leaves the last collectives of each rank, of the one that hangs too") {
  Workplace place;
  fs::path run;
  // The ranks have a tenth of a second to write. A busy disk may take longer, but rarely three times.
  for (int attempt = 0; attempt < 3 && (run.empty() || !fs::exists(file_of(run, 1))); ++attempt) {
    const auto result = place.run(place.training(place.config(kStalling), {"comm.timeout=3s", "log.every=5"}));
    CHECK(result.code == 5);
    CHECK_MESSAGE(last_line(result.err).ends_with("; rank 1 was in step 7 phase data"), result.err);
    run = place.new_run();
    CHECK_MESSAGE(contains(result.err, "ddprun: rank 0: the last collectives are in " + file_of(run, 0).string()),
                  result.err);
  }
  const auto rank0 = collectives_of(run, 0), rank1 = collectives_of(run, 1);
  REQUIRE_FALSE(rank0.is_null());
  REQUIRE_FALSE(rank1.is_null());
  CHECK(contains(rank0["reason"], "this rank failed: "));
  CHECK(contains(rank0["reason"], "timeout"));
  CHECK(rank0["calls"].back()["state"] == "failed");
  CHECK(rank1["reason"] == "another rank failed");
  CHECK(rank1["calls"].back()["state"] == "finished");
  check_report(place, run);
}

TEST_CASE("SIGUSR2 ends no rank that starts, and each rank alone can be asked") {
  Workplace place;
  Job job(place, place.training(place.config(kEndless)));
  const auto ranks = job.ranks(2);
  for (int turn = 0; turn < 100; ++turn) {
    for (const auto& [rank, pid] : ranks) kill(pid, SIGUSR2);
    std::this_thread::sleep_for(5ms);
  }
  job.wait_for_steps();
  const auto run = place.new_run();
  // The last of the signals may still be on its way.
  REQUIRE(eventually([&] {
    for (const int rank : {0, 1}) fs::remove(file_of(run, rank));
    std::this_thread::sleep_for(300ms);
    return !fs::exists(file_of(run, 0)) && !fs::exists(file_of(run, 1));
  }));
  kill(ranks.at(1), SIGUSR2);
  CHECK(eventually([&] { return fs::exists(file_of(run, 1)); }));
  CHECK_FALSE(fs::exists(file_of(run, 0)));
  CHECK(collectives_of(run, 1)["calls"].size() <= 512);
  const auto report = place.ddprun({"report", run.string()});
  CHECK_MESSAGE(contains(report.err, " No file of rank 0."), report.err);
  job.launcher().send(SIGTERM);
  CHECK(job.launcher().wait().code == 143);
}

TEST_CASE("a run of one process has no collectives, and goes on after SIGUSR2") {
  Workplace place;
  Job job(place, place.training(place.config(kEndless), {"launch.nproc=1"}));
  job.wait_for_steps();
  job.launcher().send(SIGUSR2);
  CHECK(eventually([&] { return contains(job.launcher().err(), "ddprun: SIGUSR2: this run has one rank, and no"); }));
  job.launcher().send(SIGTERM);
  CHECK(job.launcher().wait().code == 143);
  CHECK_FALSE(fs::exists(file_of(place.new_run(), 0)));
}

}  // namespace
