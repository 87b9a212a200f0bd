#include "support/torch_test.hpp"

#include "comm/joined.hpp"
#include "support/error_of.hpp"
#include "train/fit.hpp"
#include "train/loop/policies.hpp"

namespace ddprun::train {
namespace {

using testing::As;
using testing::failures;
using testing::run_ranks;


// The epoch after which a run with these losses and accuracies ends; 0: it does not stop.
int64_t end_of(const EarlyStopRule& rule, const std::vector<double>& values) {
  std::map<std::string, double> numbers;
  record::EpochRecord epoch;
  for (const double value : values) {
    epoch.test_loss = epoch.test_accuracy = value;
    if (EarlyStop(rule).should_stop_after(epoch, numbers)) return epoch.epoch;
    ++epoch.epoch;
  }
  return 0;
}

TEST_CASE("a run ends after `patience` epochs in a row without an improvement") {
  CHECK(end_of({"test.loss", 2, 0}, {5, 4, 4, 3, 3, 3, 1}) == 6);
  CHECK(end_of({"test.loss", 3, 0}, {5, 4, 4, 3, 3, 3, 1}) == 0);
  CHECK(end_of({"test.loss", 1, 0}, {5, 6}) == 2);
  CHECK(end_of({"test.accuracy", 2, 0}, {0.1, 0.5, 0.4, 0.5}) == 4);
}

TEST_CASE("an improvement is more than min_delta better than the best so far") {
  CHECK(end_of({"test.loss", 2, 0.5}, {5, 4.6, 4.4, 4.2, 4}) == 5);  // 4.4 improves on 5, and 4 not on 4.4
  CHECK(end_of({"test.accuracy", 2, 0.1}, {0.5, 0.59, 0.61, 0.6, 0.7}) == 5);
}

TEST_CASE("a metric that the model does not have is an error") {
  std::map<std::string, double> numbers;
  CHECK(testing::error_of([&] {
          EarlyStop({"test.accuracy", 1, 0}).should_stop_after({}, numbers);
        }) ==
        "2: train.early_stop = \"test.accuracy\": this model has no such metric; use \"test.loss\" or \"train.loss\"");
}

TEST_CASE("a fit that ends early reports it and saves a checkpoint, on all ranks") {
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
          const auto backend = comm::join_good(rank);
          Fit<LineModel> fit(rank.rank(), 2, 20, 5, Last::pad);
          Job plan = epochs(9);
          plan.checkpoint.every_epochs = 3;
          plan.early_stop = {"train.loss", 1, 1e9};  // nothing improves on the first
          const auto summary = fit.run_ddp(plan, *backend);
          require(summary.stopped == "early_stop", "stopped");
          require(summary.epochs == 2 && fit.notes.epochs.size() == 2, "epochs");
          require(fit.saved.positions.size() == 1 && fit.saved.positions[0].step == 4, "commit");
        })) == "");
}

TEST_CASE("a fit that reaches the end of its plan did not end early") {
  Fit<LineModel> fit(0, 1, 20, 5, Last::pad);
  Job plan = epochs(2);
  plan.early_stop = {"test.loss", 1, 1e9};
  CHECK(fit.run_single(plan).stopped == "");
}

TEST_CASE("a resumed fit remembers how many epochs it has waited") {
  Fit<LineModel> fit(0, 1, 20, 5, Last::pad);
  Job plan = epochs(3);
  plan.early_stop = {"train.loss", 4, 1e9};
  fit.run_single(plan);
  Fit<LineModel> next(0, 1, 20, 5, Last::pad);
  next.saved.begin = fit.saved.positions.back();
  plan.epochs = 9;
  CHECK(next.run_single(plan).epochs == 5);
}

}  // namespace
}  // namespace ddprun::train
