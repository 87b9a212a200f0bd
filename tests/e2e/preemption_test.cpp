// Ranks that a signal stops, whoever started them: all stop after the same step, commit it, and a run that resumes
// equals one that was never stopped.
#include <doctest/doctest.h>
#include <signal.h>

#include <regex>

#include "e2e/mpirun.hpp"
#include "e2e/over_backend.hpp"
#include "e2e/program.hpp"
#include "e2e/run_files.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;
using namespace std::chrono_literals;

namespace {

// Longer than a test, but it ends. Momentum, and ten steps per epoch.
const std::vector<std::string> kLong = {"train.steps=1000000", "train.evaluate=false", "checkpoint.every_epochs=0",
                                        "log.every=5"};

std::vector<std::string> with(std::vector<std::string> settings, const std::vector<std::string>& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

int64_t stopped_after(const std::string& log) {
  std::smatch match;
  REQUIRE_MESSAGE(std::regex_search(log, match, std::regex("ddprun: stopping after step (\\d+)\n")), log);
  return std::stoll(match[1]);
}

// All ranks have made the same steps, and the last is committed.
void check_stopped(const std::filesystem::path& run, int world, const std::string& log) {
  const int64_t last = stopped_after(log);
  CHECK(commits_of(run).back().step == last);
  for (int rank = 0; rank < world; ++rank) CHECK(steps_of(run, rank).size() == static_cast<std::size_t>(last));
  CHECK(summary_of(run).at("stopped") == "interrupted");
  CHECK_MESSAGE(contains(log, "to resume: repeat the command with --set checkpoint.resume=" + run.string() + "\n"),
                log);
}

using Send = std::function<void(Job&, const std::map<int, pid_t>&)>;

struct Stopped {
  std::filesystem::path run;
  ProcessResult result;
};

// Three ranks of mpirun, which get a signal in the middle of their training.
Stopped stop(Workplace& place, const Send& send) {
  Job job(place, under_mpirun(3, place.training(place.config(kExperiment), kLong)));
  job.wait_for_steps();
  const auto ranks = job.ranks(3, "OMPI_COMM_WORLD_RANK");
  send(job, ranks);
  auto result = job.launcher().wait(60s);
  for (const auto& [rank, pid] : ranks) CHECK(eventually([pid = pid] { return !is_alive(pid); }));
  return {place.new_run(), result};
}

TEST_CASE("SIGTERM to one rank of mpirun stops all after the same step with 143, and the run resumes bit for bit") {
  if (!has_mpirun()) return;
  Workplace place;
  const auto [broken, result] =
      stop(place, [](Job&, const std::map<int, pid_t>& ranks) { kill(ranks.at(2), SIGTERM); });
  CHECK(result.code == 143);
  check_stopped(broken, 3, result.err);

  const std::string config = place.config(kExperiment), end = std::to_string(stopped_after(result.err) + 13);
  const auto train = [&](const std::vector<std::string>& more) {
    const auto settings = with(with(kLong, {"train.steps=" + end}), more);
    const auto trained = place.run(under_mpirun(3, place.training(config, settings)));
    REQUIRE_MESSAGE(trained.code == 0, trained.err);
    return place.new_run();
  };
  const auto resumed = train({"checkpoint.resume=" + broken.string()});
  const auto whole = train({});
  auto losses = losses_of(broken, 3);
  for (const double loss : losses_of(resumed, 3)) losses.push_back(loss);
  CHECK(losses == losses_of(whole, 3));
  CHECK(weights_of(resumed) == weights_of(whole));
}

TEST_CASE("auto under mpirun: rank 0 finds the checkpoint for all, and all end with 0 when nothing is left") {
  if (!has_mpirun()) return;
  Workplace place;
  const std::string config = place.config(kExperiment);
  const auto start = [&](const std::string& steps) {
    const auto result = place.run(under_mpirun(2, place.training(config, {"checkpoint.resume=auto", steps})));
    REQUIRE_MESSAGE(result.code == 0, result.err);
    return result.err;
  };
  CHECK(contains(start("train.steps=7"), "this is a new run"));
  const auto first = place.new_run();
  const std::string log = start("train.steps=9");
  CHECK_MESSAGE(contains(log, "resuming from " + commits_of(first).back().path + ": step 7"), log);
  const auto second = place.new_run();
  for (const int rank : {0, 1}) CHECK(steps_of(second, rank).front().at("step") == 8);
  const std::string end = start("train.steps=9");
  CHECK_MESSAGE(contains(end, "nothing is left to train: " + commits_of(second).back().path), end);
  CHECK(end.find("nothing is left") == end.rfind("nothing is left"));
  const auto refused = place.run(under_mpirun(2, place.training(config, {"checkpoint.resume=nowhere"})));
  CHECK(refused.code == 2);
  CHECK_MESSAGE(contains(refused.err, "checkpoint.resume = \"nowhere\": no such file or folder"), refused.err);
}

TEST_CASE("SIGTERM to every rank stops all after the same step with 143") {
  if (!has_mpirun()) return;
  Workplace place;
  const auto [run, result] = stop(place, [](Job&, const std::map<int, pid_t>& ranks) {
    for (const auto& [rank, pid] : ranks) kill(pid, SIGTERM);
  });
  CHECK(result.code == 143);
  check_stopped(run, 3, result.err);
}

TEST_CASE("SIGUSR1 to mpirun, which passes it on, stops all ranks with 143; SIGINT to a rank with 130") {
  if (!has_mpirun()) return;
  Workplace place;
  const auto usr1 = stop(place, [](Job& job, const std::map<int, pid_t>&) { job.launcher().send(SIGUSR1); });
  CHECK(usr1.result.code == 143);
  check_stopped(usr1.run, 3, usr1.result.err);
  const auto interrupted = stop(place, [](Job&, const std::map<int, pid_t>& ranks) { kill(ranks.at(0), SIGINT); });
  CHECK(interrupted.result.code == 130);
  check_stopped(interrupted.run, 3, interrupted.result.err);
}

TEST_CASE("a second SIGTERM ends the ranks of mpirun immediately, even if one does not react") {
  if (!has_mpirun()) return;
  Workplace place;
  const auto [run, result] = stop(place, [](Job&, const std::map<int, pid_t>& ranks) {
    kill(ranks.at(2), SIGSTOP);  // so that the ranks cannot agree
    kill(ranks.at(0), SIGTERM);
    std::this_thread::sleep_for(300ms);
    kill(ranks.at(0), SIGTERM);
  });
  CHECK(result.code == 143);
  CHECK(commits_of(run).empty());
}

TEST_CASE("before the first step a signal ends a rank at once: nothing is to be saved") {
  for (const int signal : {SIGTERM, SIGUSR1}) {
    CAPTURE(signal);
    Workplace place;
    auto environment = place.environment();
    environment.insert(environment.end(), {"WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "RANK=0", "MASTER_PORT=0"});
    environment.back() = "MASTER_PORT=" + std::to_string(free_port());
    Process waiting(place.training(place.config(kExperiment), {"launch.timeout=60s"}), environment);
    REQUIRE(eventually([&] { return contains(waiting.err(), "has started 2 ranks"); }));
    waiting.send(signal);
    CHECK(waiting.wait(30s).code == 143);
    CHECK_FALSE(std::filesystem::exists(place.runs()));
  }
}

TEST_CASE("a signal to one rank of our own launcher stops the job too, as systemd and Slurm may send it") {
  Workplace place;
  Job job(place, place.training(place.config(kExperiment), with(kLong, {"launch.nproc=2"})));
  job.wait_for_steps();
  kill(job.ranks(2).at(1), SIGTERM);
  const auto result = job.launcher().wait(60s);
  CHECK(result.code == 143);
  CHECK(last_line(result.err) == "ddprun: terminated; all ranks stopped");
  check_stopped(place.new_run(), 2, result.err);
  CHECK(place.leftovers().empty());
}

TEST_CASE("SIGUSR1 to our own launcher, and to a run of one process, commits and ends with 143") {
  for (const char* kind : {"ddp", "single"}) {
    CAPTURE(kind);
    Workplace place;
    const bool ddp = kind == std::string("ddp");
    Job job(place, place.training(place.config(kExperiment), with(kLong, {std::string("strategy.kind=") + kind,
                                                                          ddp ? "launch.nproc=2" : "launch.nproc=1"})));
    job.wait_for_steps();
    job.launcher().send(SIGUSR1);
    const auto result = job.launcher().wait(60s);
    CHECK(result.code == 143);
    check_stopped(place.new_run(), ddp ? 2 : 1, result.err);
  }
}

}  // namespace
