// What a job does when a rank fails, or the launcher or the user ends it: how it ends, its last line, what it leaves.
#include <doctest/doctest.h>

#include <memory>
#include <regex>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"
#include "support/paths.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;
using namespace std::chrono_literals;

namespace {

// Longer than any test; a checkpoint every 20 steps.
const std::string kEndless = R"(
[strategy]
kind = "ddp"
[launch]
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
[checkpoint]
keep = 3
[log]
every = 5
)";

// The processes of a running job, and the files that they share.
struct AtWork {
  std::vector<pid_t> processes;
  std::set<std::string> shared_files;
};

AtWork capture(const Job& job, const Workplace& place, const std::map<int, pid_t>& ranks) {
  AtWork at_work{job.descendants(), {}};
  for (const auto& [rank, pid] : ranks) at_work.shared_files.merge(mapped_files(pid, place.folder() / "tmp"));
  return at_work;
}

void check_nothing_left(const AtWork& at_work, const Workplace& place) {
  for (const pid_t pid : at_work.processes) CHECK(eventually([&] { return !is_alive(pid); }));
  for (const std::string& file : at_work.shared_files) CHECK_FALSE(std::filesystem::exists(file));
  CHECK(place.leftovers().empty());
}

void wait_for_commit(const Workplace& place) {
  REQUIRE(eventually(
      [&] {
        for (const auto& run : std::filesystem::directory_iterator(place.runs())) {
          if (!commits_of(run.path()).empty()) return true;
        }
        return false;
      },
      60s));
}

// All existing commits are complete.
void check_commits(const std::filesystem::path& run) {
  const auto commits = commits_of(run);
  REQUIRE_FALSE(commits.empty());
  for (const auto& commit : commits) {
    const auto file = ddprun::checkpoint::read_safetensors(commit.path);
    CHECK(file.at("fc1.weight").shape == std::vector<int64_t>{32, 784});
    CHECK(file.metadata.at("step") == std::to_string(commit.step));
  }
}

TEST_CASE("SIGKILL of a rank ends the job with 5, names rank, pid, step and phase, and leaves only the commits") {
  Workplace place;
  Job job(place, place.training(place.config(kEndless), {"launch.nproc=3"}));
  job.wait_for_steps();
  wait_for_commit(place);
  const auto ranks = job.ranks(3);
  const AtWork at_work = capture(job, place, ranks);
  CHECK(at_work.processes.size() >= 3);
  CHECK_FALSE(at_work.shared_files.empty());

  const pid_t victim = ranks.at(1);
  const auto killed = std::chrono::steady_clock::now();
  kill(victim, SIGKILL);
  const auto result = job.launcher().wait();
  const auto down = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - killed);
  MESSAGE("from the kill to the exit of the launcher: ", down.count(), " ms");
  CHECK(result.code == 5);
  const std::regex expected("ddprun: failed: rank 1 \\(.+, pid " + std::to_string(victim) +
                            "\\) step \\d+ phase \\w+( bucket \\d+)?: killed by signal 9 \\(SIGKILL\\)");
  CHECK_MESSAGE(std::regex_match(last_line(result.err), expected), result.err);
  CHECK(result.err.find("failed:") == result.err.rfind("failed:"));  // only the first cause, no other failure
  check_nothing_left(at_work, place);
  const auto run = place.new_run();
  check_commits(run);
  CHECK_FALSE(std::filesystem::exists(run / "summary.json"));  // a failed run has no result
}

// A job of two ranks that was stopped by a signal in the middle of an epoch.
struct Stopped {
  std::unique_ptr<Workplace> place = std::make_unique<Workplace>();
  AtWork at_work;
  ProcessResult result;
};

Stopped stop_by(int signal, const std::vector<std::string>& settings = {}) {
  const auto stop = [&] {
    Stopped stopped;
    const Workplace& place = *stopped.place;
    std::vector<std::string> all = {"launch.nproc=2", "data.options.samples=2400000"};
    all.insert(all.end(), settings.begin(), settings.end());
    Job job(place, place.training(place.config(kEndless), all));
    job.wait_for_steps();
    stopped.at_work = capture(job, place, job.ranks(2));
    job.launcher().send(signal);
    stopped.result = job.launcher().wait();
    return stopped;
  };
  Stopped stopped = stop();
  // A slow disk may block for longer than the launcher's grace of 5 s, but rarely twice.
  return contains(last_line(stopped.result.err), "; the ranks were killed") ? stop() : std::move(stopped);
}

TEST_CASE("SIGINT: the ranks finish a common step, commit it, and the job ends with 130") {
  const auto [place, at_work, result] = stop_by(SIGINT);
  CHECK(result.code == 130);
  std::smatch match;
  REQUIRE(std::regex_search(result.err, match, std::regex("ddprun: stopping after step (\\d+)\n")));
  CHECK(last_line(result.err) == "ddprun: interrupted; all ranks stopped");
  check_nothing_left(at_work, *place);
  const auto run = place->new_run();
  check_commits(run);
  const auto last = static_cast<std::size_t>(std::stoll(match[1]));
  CHECK(commits_of(run).back().step == std::stoll(match[1]));
  for (const int rank : {0, 1}) CHECK(steps_of(run, rank).size() == last);
}

TEST_CASE("SIGTERM commits too, and ends with 143") {
  const auto [place, at_work, result] = stop_by(SIGTERM);
  CHECK(result.code == 143);
  CHECK(last_line(result.err) == "ddprun: terminated; all ranks stopped");
  check_nothing_left(at_work, *place);
  check_commits(place->new_run());
}

TEST_CASE("a SIGINT does not wait for an evaluation that takes longer than the grace") {
  const auto [place, at_work, result] = stop_by(SIGINT, {"data.options.test_samples=100000000"});
  CHECK(result.code == 130);
  CHECK(last_line(result.err) == "ddprun: interrupted; all ranks stopped");
  check_nothing_left(at_work, *place);
  check_commits(place->new_run());
}

TEST_CASE("a second SIGINT ends the job immediately, even if a rank does not react to the first") {
  Workplace place;
  Job job(place, place.training(place.config(kEndless), {"launch.nproc=2"}));
  job.wait_for_steps();
  const auto ranks = job.ranks(2);
  const AtWork at_work = capture(job, place, ranks);
  kill(ranks.at(1), SIGSTOP);  // so that the step never completes
  job.launcher().send(SIGINT);
  REQUIRE(eventually([&] { return contains(job.launcher().err(), "a second signal ends them at once"); }));
  job.launcher().send(SIGINT);
  const auto result = job.launcher().wait();
  CHECK(result.code == 130);
  CHECK(last_line(result.err) == "ddprun: interrupted; the ranks were killed");
  check_nothing_left(at_work, place);
}

TEST_CASE("SIGSTOP of a rank ends the job with 5, and the last line names the rank") {
  Workplace place;
  Job job(place, place.training(place.config(kEndless), {"launch.nproc=2"}));
  job.wait_for_steps();
  const auto ranks = job.ranks(2);
  const AtWork at_work = capture(job, place, ranks);
  kill(ranks.at(1), SIGSTOP);
  const auto result = job.launcher().wait();
  CHECK(result.code == 5);
  CHECK_MESSAGE(contains(last_line(result.err), "ddprun: failed: rank 1 ("), result.err);
  CHECK_MESSAGE(contains(last_line(result.err), "stopped by a signal"), result.err);
  check_nothing_left(at_work, place);
}

TEST_CASE("SIGKILL of the launcher ends all ranks") {
  Workplace place;
  AtWork at_work;
  {
    Job job(place, place.training(place.config(kEndless), {"launch.nproc=3"}));
    job.wait_for_steps();
    at_work = capture(job, place, job.ranks(3));
    job.launcher().send(SIGKILL);
    CHECK(job.launcher().wait().code == 128 + SIGKILL);
  }
  for (const pid_t pid : at_work.processes) CHECK(eventually([&] { return !is_alive(pid); }));
  CHECK(eventually([&] { return place.leftovers().empty(); }));
}

TEST_CASE("a loss that is no longer finite stops all ranks with 1, once, with its step and what to try") {
  Workplace place;
  const auto result = place.run(place.training(place.config(kEndless), {"launch.nproc=3", "optimizer.lr=1e30"}));
  CHECK(result.code == 1);
  const std::regex expected(
      "ddprun: failed: rank \\d \\(.+, pid \\d+\\) step \\d+ phase forward: the loss is (-?nan|-?inf)[:;] "
      ".*optimizer\\.lr.*");
  CHECK_MESSAGE(std::regex_match(last_line(result.err), expected), result.err);
  CHECK(result.err.find("failed:") == result.err.rfind("failed:"));
  CHECK(place.leftovers().empty());
}

TEST_CASE("strategy single: SIGINT commits the current step and ends with 130, SIGTERM with 143") {
  for (const auto& [signal, code] : {std::pair(SIGINT, 130), std::pair(SIGTERM, 143)}) {
    CAPTURE(signal);
    Workplace place;
    Job job(place, place.training(place.config(kEndless), {"strategy.kind=single", "data.options.samples=2400000"}));
    job.wait_for_steps();
    job.launcher().send(signal);
    const auto result = job.launcher().wait();
    CHECK(result.code == code);
    const auto run = place.new_run();
    check_commits(run);
    CHECK(commits_of(run).back().step == static_cast<int64_t>(steps_of(run, 0).size()));
  }
}

TEST_CASE("a loss that is no longer finite ends a run of one process in the same way") {
  Workplace place;
  const auto result = place.run(place.training(place.config(kEndless), {"strategy.kind=single", "optimizer.lr=1e30"}));
  CHECK(result.code == 1);
  const std::regex expected("ddprun: failed: step \\d+ phase forward: the loss is (nan|infinite); .*optimizer\\.lr.*");
  CHECK_MESSAGE(std::regex_match(last_line(result.err), expected), result.err);
}

TEST_CASE("a launcher that was started with SIGCHLD ignored still sees its ranks end") {
  Workplace place;
  const auto argv = place.training(place.config(kEndless), {"launch.nproc=2", "train.steps=3"});
  std::vector<std::string> command = {
      "/usr/bin/env", "python3", "-c",
      "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"};
  command.insert(command.end(), argv.begin(), argv.end());
  const auto result = place.run(command);
  CHECK_MESSAGE(result.code == 0, result.err);
}

TEST_CASE("if a rank hangs, the others end at comm.timeout, and the line says where it was") {
  Workplace place;
  const auto result = place.run(place.training(place.config(kStalling), {"comm.timeout=3s"}));
  CHECK(result.code == 5);
  CHECK_MESSAGE(contains(last_line(result.err), "ddprun: failed: rank 0 ("), result.err);
  CHECK_MESSAGE(contains(last_line(result.err), "step 7 phase "), result.err);
  CHECK_MESSAGE(last_line(result.err).ends_with("; rank 1 was in step 7 phase data"), result.err);
  CHECK(place.leftovers().empty());
}

}  // namespace
