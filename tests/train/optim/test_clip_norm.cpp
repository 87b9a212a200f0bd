#include "support/torch_test.hpp"

#include "comm/joined.hpp"
#include "train/fit.hpp"

namespace ddprun::train {
namespace {

using testing::As;
using testing::failures;
using testing::run_ranks;

constexpr double kRate = 0.05;  // of Fit's optimizer

Job one_step() {
  return {std::nullopt, 1, false, {0}};
}

// The negative change of one step of gradient descent without a limit: rate * gradient.
torch::Tensor step_without_limit() {
  Fit<LineModel> fit(0, 1, 12, 12, Last::pad);
  const torch::Tensor before = fit.weights();
  fit.run_single(one_step());
  return before - fit.weights();
}

TEST_CASE("a limit above the norm changes nothing; below it, the gradients keep their direction") {
  const torch::Tensor full = step_without_limit();
  const double norm = full.norm().item<double>() / kRate;
  for (const double limit : {2 * norm, norm / 4}) {
    CAPTURE(limit);
    Fit<LineModel> fit(0, 1, 12, 12, Last::pad);
    fit.step.clip_norm = limit;
    const torch::Tensor before = fit.weights();
    fit.run_single(one_step());
    // torch.nn.utils.clip_grad_norm_: gradient * min(1, limit / (norm + 1e-6)), over all parameters together.
    const double factor = std::min(1.0, limit / (norm + 1e-6));
    CHECK(torch::allclose(before - fit.weights(), full * factor, 1e-4, 1e-7));
  }
}

TEST_CASE("the norm of the averaged gradients is limited, and the replicas stay equal") {
  const torch::Tensor full = step_without_limit();
  const double norm = full.norm().item<double>() / kRate;
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
          const auto backend = comm::join_good(rank);
          Fit<LineModel> fit(rank.rank(), 2, 12, 6, Last::pad);
          fit.step.clip_norm = norm / 4;
          const torch::Tensor before = fit.weights();
          fit.run_ddp(one_step(), *backend, /*hash_every=*/1);
          require(torch::allclose(before - fit.weights(), full / 4, 1e-4, 1e-7), "step");
        })) == "");
}

}  // namespace
}  // namespace ddprun::train
