// A checkpoint that cannot be written ends the training, or is left out on all ranks.
#include "support/torch_test.hpp"

#include "comm/joined.hpp"
#include "train/fit.hpp"

namespace ddprun::train {
namespace {

using testing::As;
using testing::failures;
using testing::run_ranks;


struct Writing {
  bool may_fail;
  int bad_rank;      // whose state of step 4 cannot be written
  bool bad_weights;  // the weights of step 4 cannot be written
  ExitCode code = ExitCode::failure;
};

void train(testing::Rank& rank, const Writing& writing, std::vector<int64_t>& weights, std::vector<int64_t>& states) {
  const auto backend = comm::join_good(rank);
  Fit<LineModel> fit(rank.rank(), 2, 24, 1, Last::pad);
  const auto fail = [&](int64_t step) {
    if (step == 4) throw Error(writing.code, "cannot write 8 bytes to step 4");
  };
  if (rank.rank() == writing.bad_rank) fit.saved.at_state = fail;
  if (writing.bad_weights) fit.saved.at_weights = fail;
  fit.run_ddp({std::nullopt, 8, false, CheckpointRule{0, 2, writing.may_fail}}, *backend);
  weights = fit.saved.steps;
  for (const Position& position : fit.saved.positions) states.push_back(position.step);
}

TEST_CASE("with may_fail, a checkpoint is left out on all ranks if one rank cannot write its state") {
  for (const int bad_rank : {0, 1}) {
    CHECK(failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
            std::vector<int64_t> weights, states;
            train(rank, {true, bad_rank, false}, weights, states);
            if (rank.rank() == 0) require(weights == std::vector<int64_t>{2, 6, 8}, "weights");
            const std::vector<int64_t> all{2, 4, 6, 8}, without{2, 6, 8};
            require(states == (rank.rank() == bad_rank ? without : all), "states");
          })) == "");
  }
}

TEST_CASE("with may_fail, the training continues if the weights cannot be written") {
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
          std::vector<int64_t> weights, states;
          train(rank, {true, -1, true}, weights, states);
          if (rank.rank() == 0) require(weights == std::vector<int64_t>{2, 6, 8}, "weights");
        })) == "");
}

TEST_CASE("with may_fail, best weights that cannot be written are not the best so far") {
  Fit<LineModel> fit(0, 1, 24, 1, Last::pad);
  fit.saved.at_weights = [](int64_t step) {
    if (step == 24) throw Error(ExitCode::failure, "cannot write");
  };
  fit.run_single({3, std::nullopt, true, CheckpointRule{0, 0, true}, "test.loss"});
  CHECK(fit.saved.best == std::vector<int64_t>{48, 72});
}

TEST_CASE("without may_fail, or if it is not the disk that failed, the error ends the training") {
  for (const Writing& writing : {Writing{false, 0, false}, {false, -1, true}, {true, 0, false, ExitCode::usage}}) {
    const std::string all = failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
      std::vector<int64_t> weights, states;
      train(rank, writing, weights, states);
    }));
    CHECK_MESSAGE(all.find("cannot write 8 bytes to step 4") != std::string::npos, all);
  }
}

}  // namespace
}  // namespace ddprun::train
