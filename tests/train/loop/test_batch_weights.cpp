// Load balance: the gradient of a step is that of all its samples, however they are split among the ranks.
#include "support/torch_test.hpp"

#include "comm/joined.hpp"
#include "support/error_of.hpp"
#include "train/fit.hpp"

namespace ddprun::train {
namespace {

using testing::As;
using testing::failures;
using testing::run_ranks;


TEST_CASE("ranks with unequal batch weights match one rank, also if a rank has no sample") {
  Fit<LineModel> alone(0, 1, 47, 6, Last::exact);
  alone.run_single(epochs(2));
  const torch::Tensor expected = alone.weights();
  for (const std::vector<double>& shares : {std::vector<double>{2, 1, 3}, std::vector<double>{100, 1, 100}}) {
    CHECK(failures(run_ranks(3, As::processes, kDeadline, [&](testing::Rank& rank) {
            const auto backend = comm::join_good(rank);
            Fit<LineModel> fit(rank.rank(), 3, 47, 2, Last::exact);
            fit.loader->set_batch_weights(shares);
            fit.run_ddp(epochs(2), *backend);
            const int64_t most =
                std::lround(6 * shares[static_cast<std::size_t>(rank.rank())] / (shares[0] + shares[1] + shares[2]));
            require(fit.notes.steps[0].samples == most, "samples of the first step");
            require(torch::allclose(fit.weights(), expected, 1e-5, 1e-6), "weights");
          })) == "");
  }
}

TEST_CASE("batch weights measured in the first steps do not change the samples of any step") {
  Fit<LineModel> alone(0, 1, 48, 6, Last::exact);
  alone.run_single(epochs(3));
  const torch::Tensor expected = alone.weights();
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
          const auto backend = comm::join_good(rank);
          Fit<LineModel> fit(rank.rank(), 2, 48, 3, Last::exact);
          Job plan = epochs(3);
          plan.balance_steps = 4;
          const auto summary = fit.run_ddp(plan, *backend);
          require(fit.notes.steps[3].samples == 3, "equal shares at first");
          require(
              summary.samples_per_rank.size() == 2 && summary.samples_per_rank[0] + summary.samples_per_rank[1] == 6,
              "shares");
          const auto mine = summary.samples_per_rank[static_cast<std::size_t>(rank.rank())];
          require(fit.notes.steps[4].samples == mine, "measured shares from the next step on");
          require(fit.notes.samples_per_rank == summary.samples_per_rank, "reported samples");
          require(torch::allclose(fit.weights(), expected, 1e-5, 1e-6), "weights");
        })) == "");
}

}  // namespace
}  // namespace ddprun::train
