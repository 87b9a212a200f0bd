// Compares training over a backend with training over Gloo, and checks what a killed rank leaves.
#pragma once

#include <doctest/doctest.h>

#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"
#include "testing/leftovers.hpp"

namespace ddprun::e2e {

using testing::contains;
using testing::last_line;

// 240 samples in ten steps of 24, which is divisible by 2 and 3 ranks; several buckets.
inline const std::string kExperiment = R"(
[strategy]
kind = "ddp"
bucket_cap_mb = 0.004
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

// How the gradients were reduced, from the summary.
struct Execution {
  std::string algorithm, transport;
  bool operator==(const Execution&) const = default;
};

struct Trained {
  std::vector<double> losses;
  Weights weights;
  Execution execution;
};

inline Trained train(int world, const std::string& backend, const std::string& algorithm,
                     const std::string& options = "{}") {
  Workplace place;
  const auto result = place.run(
      place.training(place.config(kExperiment), {"launch.nproc=" + std::to_string(world), "comm.backend=" + backend,
                                                 "comm.algorithm=" + algorithm, "comm.options=" + options}));
  INFO(result.err);
  REQUIRE(result.code == 0);
  const auto run = place.new_run();
  const auto summary = summary_of(run);
  return {losses_of(run, world), weights_of(run), {summary.at("algorithm"), summary.at("transport")}};
}

// Returns the execution for each requested algorithm.
inline std::map<std::string, Execution> check_learning(const std::string& backend, int world,
                                                       const std::vector<std::string>& algorithms) {
  const Trained expected = train(world, "gloo", "ring");
  // Weights that did not change would be equal in any case.
  REQUIRE(expected.losses.front() != doctest::Approx(expected.losses.back()).epsilon(0.02));
  std::map<std::string, Execution> executions;
  for (const std::string& algorithm : algorithms) {
    CAPTURE(world);
    CAPTURE(algorithm);
    const Trained trained = train(world, backend, algorithm);
    CHECK(trained.losses.size() == 10);
    CHECK(distance(trained.losses, expected.losses) < 1e-5);
    CHECK(distance(trained.weights, expected.weights) < 1e-5);
    executions[algorithm] = trained.execution;
  }
  return executions;
}

inline void check_death(const std::string& backend, const std::string& algorithm) {
  CAPTURE(algorithm);
  Workplace place;
  conformance::Leftovers leftovers;
  Job job(place, place.training(place.config(kExperiment + "[train]\nepochs = 1000000\n"),
                                {"launch.nproc=3", "comm.backend=" + backend, "comm.algorithm=" + algorithm}));
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
    // Temporary files belong to this test: they have the job's output.
    CHECK_MESSAGE(!(left.starts_with("/dev/shm") || left.starts_with("System V")), left);
  }
  CHECK(place.leftovers().empty());
}

}  // namespace ddprun::e2e
