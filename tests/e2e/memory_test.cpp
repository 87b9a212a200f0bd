// The memory requests of a rank with a large model to the kernel, after the first steps.
#include <doctest/doctest.h>
#include <sys/prctl.h>
#include <unistd.h>

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

// summary.json of a run with these environment variables, and with pages of the usual size whatever the machine's
// settings are.
nlohmann::json summary_with(const std::vector<std::string>& variables, int steps) {
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);  // children inherit it
  Workplace place;
  std::vector<std::string> argv = {"/usr/bin/env"};
  argv.insert(argv.end(), variables.begin(), variables.end());
  const auto training = place.training(place.config(kImages), {"train.steps=" + std::to_string(steps)});
  argv.insert(argv.end(), training.begin(), training.end());
  const auto printed = place.run(argv);
  INFO(printed.err);
  REQUIRE(printed.code == 0);
  CHECK(contains(printed.out, "\npage faults per step "));
  CHECK(contains(printed.out, "\npeak memory "));
  return summary_of(place.new_run());
}

TEST_CASE("a step of resnet18 reuses the memory of the step before, and requests none from the kernel") {
  const auto summary = summary_with({}, 41);
  const double faults = summary.at("page_faults");
  MESSAGE(faults << " page faults per step");
  // A hundredth of glibc's default behaviour, 17,600. With small buckets, because glibc adapts its thresholds to the
  // largest freed blocks. The largest gradient has 2,304 pages: if a late step is the first to need memory for another
  // one, that is 64 for each of the 36 steps that count.
  CHECK(faults < 176);
  // Parameters and gradients alone need 89 MB; freed memory that is kept must not accumulate.
  CHECK(summary.at("peak_memory_bytes").get<int64_t>() > 89'000'000);
  // PyTorch DDP needs more than 900 MB for such a rank (bench/memory.py).
  CHECK(summary.at("peak_memory_bytes").get<int64_t>() < 500'000'000);
}

TEST_CASE("malloc's thresholds in the environment have precedence") {
  const auto summary = summary_with({"MALLOC_TRIM_THRESHOLD_=131072"}, 9);
  CHECK(summary.at("page_faults").get<double>() > 5000.0 * 4096 / static_cast<double>(sysconf(_SC_PAGESIZE)));
}

TEST_CASE("a run that is too short reports no page faults") {
  Workplace place;
  const auto printed = place.run(place.training(place.config(kImages), {"train.steps=3"}));
  INFO(printed.err);
  REQUIRE(printed.code == 0);
  CHECK_FALSE(contains(printed.out, "page faults"));
  CHECK_FALSE(summary_of(place.new_run()).contains("page_faults"));
}

}  // namespace
