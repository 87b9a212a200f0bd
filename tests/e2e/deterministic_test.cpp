// train.deterministic: Torch refuses kernels that vary from run to run. tests/gpu/run compares the bits on a GPU.
#include <doctest/doctest.h>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"

using namespace ddprun::e2e;
using ddprun::testing::contains;

namespace {

const std::string kConfig = R"(
launch.threads = 1
optimizer.lr = 0.01
train = { steps = 3, deterministic = true }
[model]
name = ")" FAULTY_MODEL R"("
[data]
name = "synthetic"
batch_size = 8
options = { shape = "8", classes = 4, samples = 24, test_samples = 8 }
)";

}  // namespace

TEST_CASE("with train.deterministic, an operation that has no deterministic kernel is an error") {
  const Workplace place;
  const std::string config = place.config(kConfig);
  const auto good = place.run(place.training(config));
  CHECK_MESSAGE(good.code == 0, good.err);

  const std::string fault = "model.options.fault=varies";
  const auto varies = place.run(place.training(config, {fault}));
  CHECK(varies.code == 1);
  CHECK(contains(varies.err,
                 "\nddprun: failed: step 1 phase forward: put_ has no deterministic kernel: change the model, or "
                 "do not ask for such kernels (train.deterministic = false)\n"));
  CHECK(place.run(place.training(config, {fault, "train.deterministic=false"})).code == 0);
}
