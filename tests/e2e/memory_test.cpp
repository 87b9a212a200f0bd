// The memory requests of a rank with a large model to the kernel, after the first steps.
#include <doctest/doctest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

const std::string kImages = R"(
[launch]
nproc = 2
threads = 1
[strategy]
kind = "ddp"
bucket_cap_mb = 1
[model]
name = "resnet18"
options = { stem = "small" }
[data]
name = "synthetic"
batch_size = 8
batch_per = "rank"
options = { shape = "3x32x32", classes = 10, samples = 656, test_samples = 16 }
[train]
evaluate = false
)";

struct Measured {
  double faults = 0;  // of a rank in a step
  nlohmann::json summary;
};

// Page faults of the program and its ranks, which it has waited for.
int64_t faults_of_children() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return usage.ru_minflt;
}

// Two runs with these environment variables, one with `steps` steps more than the other, and with pages of the usual
// size whatever the machine's settings are.
Measured measure(const std::vector<std::string>& variables, int steps) {
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);  // children inherit it
  constexpr int kFewSteps = 5;            // they allocate optimizer state, buckets and the batches
  Measured measured;
  std::array<int64_t, 2> faults{};
  for (const bool more : {false, true}) {
    Workplace place;
    std::vector<std::string> argv = {"/usr/bin/env"};
    argv.insert(argv.end(), variables.begin(), variables.end());
    const auto training =
        place.training(place.config(kImages), {"train.steps=" + std::to_string(kFewSteps + (more ? steps : 0))});
    argv.insert(argv.end(), training.begin(), training.end());
    const int64_t before = faults_of_children();
    const auto printed = place.run(argv);
    faults[more ? 1 : 0] = faults_of_children() - before;
    INFO(printed.err);
    REQUIRE(printed.code == 0);
    CHECK(contains(printed.out, "\npeak memory "));
    measured.summary = summary_of(place.new_run());
  }
  measured.faults = static_cast<double>(faults[1] - faults[0]) / (2.0 * steps);
  return measured;
}

TEST_CASE("a step of resnet18 reuses the memory of the step before, and requests none from the kernel") {
  const Measured measured = measure({}, 36);
  MESSAGE(measured.faults << " page faults per step");
  // A hundredth of glibc's default behaviour, 17,600. With small buckets, because glibc adapts its thresholds to the
  // largest freed blocks. The largest gradient has 2,304 pages: if a late step is the first to need memory for another
  // one, that is 64 for each of the 36 steps that count.
  CHECK(measured.faults < 176);
  // Parameters and gradients alone need 89 MB; freed memory that is kept must not accumulate.
  CHECK(measured.summary.at("peak_memory_bytes").get<int64_t>() > 89'000'000);
  // PyTorch DDP needs more than 900 MB for such a rank (bench/memory.py).
  CHECK(measured.summary.at("peak_memory_bytes").get<int64_t>() < 500'000'000);
}

TEST_CASE("malloc's thresholds in the environment have precedence") {
  const Measured measured = measure({"MALLOC_TRIM_THRESHOLD_=131072"}, 4);
  CHECK(measured.faults > 5000.0 * 4096 / static_cast<double>(sysconf(_SC_PAGESIZE)));
}

}  // namespace
