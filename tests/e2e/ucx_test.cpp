// Training over comm_ucx: the same experiment as over Gloo, and what is left when a rank dies.
#include <doctest/doctest.h>

#include <csignal>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"
#include "tools/conformance/leftovers.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

// 240 samples in ten steps of 24, divisible by 2 and 3 ranks; several buckets.
const std::string kExperiment = R"(
[strategy]
kind = "ddp"
first_bucket_mb = 0.05
bucket_mb = 0.4
[launch]
threads = 1
[model]
name = "simplenet"
[data]
name = "synthetic"
batch_size = 24
options = { shape = "1x28x28", classes = 10, samples = 240, test_samples = 48 }
[optimizer]
name = "sgd"
lr = 0.05
momentum = 0.9
)";

struct Trained {
  std::vector<double> losses;
  Weights weights;
  std::string algorithm, transport;  // as used
};

Trained train(int world, const std::string& backend, const std::string& algorithm) {
  Workplace place;
  const auto result =
      place.run(place.training(place.config(kExperiment), {"launch.nproc=" + std::to_string(world),
                                                           "comm.backend=" + backend, "comm.algorithm=" + algorithm}));
  INFO(result.err);
  REQUIRE(result.code == 0);
  const auto run = place.new_run();
  const auto summary = summary_of(run);
  return {losses_of(run, world), weights_of(run), summary.at("algorithm"), summary.at("transport")};
}

TEST_CASE("ranks over UCX give the results of Gloo's ring") {
  for (const int world : {2, 3}) {
    const Trained expected = train(world, "gloo", "ring");
    // Weights that did not change would be equal in any case.
    REQUIRE(expected.losses.front() != doctest::Approx(expected.losses.back()).epsilon(0.02));
    for (const std::string algorithm : {"auto", "ring", "tree"}) {
      CAPTURE(world);
      CAPTURE(algorithm);
      const Trained trained = train(world, "ucx", algorithm);
      CHECK(trained.losses.size() == 10);
      CHECK(distance(trained.losses, expected.losses) < 1e-5);
      CHECK(distance(trained.weights, expected.weights) < 1e-5);
      CHECK(trained.algorithm == (algorithm == "auto" ? "shared" : algorithm));
      if (algorithm == "auto") CHECK(trained.transport == "memory");
    }
  }
}

TEST_CASE("SIGKILL of a rank is reported, and leaves no shared memory") {
  for (const std::string algorithm : {"auto", "ring"}) {
    CAPTURE(algorithm);
    Workplace place;
    ddprun::conformance::Leftovers leftovers;
    Job job(place, place.training(place.config(kExperiment + "[train]\nepochs = 1000000\n"),
                                  {"launch.nproc=3", "comm.backend=ucx", "comm.algorithm=" + algorithm}));
    job.wait_for_steps();
    const auto ranks = job.ranks(3);
    kill(ranks.at(1), SIGKILL);
    const auto result = job.launcher().wait();
    CHECK(result.code == 5);
    CHECK_MESSAGE(contains(last_line(result.err), "rank 1"), result.err);
    CHECK_MESSAGE(contains(last_line(result.err), "killed by signal 9 (SIGKILL)"), result.err);
    std::vector<pid_t> processes;
    for (const auto& [rank, pid] : ranks) processes.push_back(pid);
    for (const auto& left : leftovers.found(processes)) {
      // Temporary files are this test's own, for the job's output.
      CHECK_MESSAGE(!(left.starts_with("/dev/shm") || left.starts_with("System V")), left);
    }
    CHECK(place.leftovers().empty());
  }
}

}  // namespace
