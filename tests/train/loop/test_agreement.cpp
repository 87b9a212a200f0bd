#include "train/loop/agreement.hpp"

#include "support/torch_test.hpp"

#include "comm/joined.hpp"
#include "train/fit.hpp"

namespace ddprun::train {
namespace {

using testing::As;
using testing::failures;
using testing::run_ranks;

using Steps = std::vector<int64_t>;

// A training of 60 steps in epochs of 40, whose clock the test sets; what the agreement asked, and when.
struct Agreed {
  Agreed(int rank, int world, double seconds_per_step, double checkpoint_seconds = 0)
      : fit(rank, world, 40 * world, 1, Last::pad),
        agreement({.stop_requested =
                       [this] {
                         exchanges.push_back(static_cast<int64_t>(fit.notes.steps.size()));
                         return exchanges.back() >= request_step ? request : ExitCode::ok;
                       },
                   .checkpoint_seconds = checkpoint_seconds,
                   .clock = [this] { return time; }}) {
    fit.notes.at_step = [this, seconds_per_step] { time += seconds_per_step; };
    fit.policies = {&agreement};
  }

  record::Summary run(CommBackend& backend) {
    return fit.run_ddp({std::nullopt, 60, false, CheckpointRule{0, every_steps}}, backend);
  }
  Steps committed() const {
    Steps steps;
    for (const Position& position : fit.saved.positions) steps.push_back(position.step);
    return steps;
  }

  Fit<LineModel> fit;
  double time = 100;
  int64_t request_step = 1'000'000;  // from here on this rank has a request
  ExitCode request = ExitCode::terminated;
  int64_t every_steps = 0;
  Steps exchanges;
  Agreement agreement;
};

void require_equal(const Steps& steps, const Steps& expected, const std::string& what) {
  std::string text;
  for (const int64_t step : steps) text += " " + std::to_string(step);
  require(steps == expected, what + text);
}

TEST_CASE("the ranks exchange after half a second of training; the time between two exchanges at most doubles") {
  CHECK(steps_to_next_exchange(10, 0.5) == 10);
  CHECK(steps_to_next_exchange(10, 1) == 5);
  CHECK(steps_to_next_exchange(10, 0.4) == 12);
  CHECK(steps_to_next_exchange(1, 0.001) == 2);
  CHECK(steps_to_next_exchange(1, 20) == 1);
  CHECK(steps_to_next_exchange(100, 1e9) == 1);
  CHECK(steps_to_next_exchange(64, 0) == 128);  // a clock that stands still
  CHECK(steps_to_next_exchange(int64_t{1} << 40, 0) == 500'000);
}

TEST_CASE("all ranks exchange after the same steps, by the clock of rank 0") {
  CHECK(failures(run_ranks(3, As::processes, kDeadline, [](testing::Rank& rank) {
          const auto backend = comm::join_good(rank);
          Agreed agreed(rank.rank(), 3, rank.rank() == 0 ? 0.05 : 7.5);
          agreed.run(*backend);
          require_equal(agreed.exchanges, {1, 3, 7, 15, 25, 35, 45, 55}, "exchanges:");
          require(agreed.agreement.stopped_by() == ExitCode::ok, "stopped");
        })) == "");
}

TEST_CASE("steps that take longer than half a second are followed by an exchange each") {
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [](testing::Rank& rank) {
          const auto backend = comm::join_good(rank);
          Agreed agreed(rank.rank(), 2, 0.7);
          agreed.run(*backend);
          require(agreed.exchanges.size() == 60, "exchanges");
        })) == "");
}

TEST_CASE("a request that one rank has stops all ranks after the same step, and they commit it") {
  for (const int asked : {0, 2}) {
    for (const ExitCode request : {ExitCode::interrupted, ExitCode::terminated}) {
      CHECK(failures(run_ranks(3, As::processes, kDeadline, [&](testing::Rank& rank) {
              const auto backend = comm::join_good(rank);
              Agreed agreed(rank.rank(), 3, 0.05);
              if (rank.rank() == asked) agreed.request_step = 18;
              agreed.request = request;
              const auto summary = agreed.run(*backend);
              require(agreed.agreement.stopped_by() == request, "stopped by");
              require(summary.stopped == kInterrupted, "reason");
              require(agreed.fit.notes.steps.size() == 25, "steps");
              require_equal(agreed.committed(), {25}, "commits:");
            })) == "");
    }
  }
}

TEST_CASE("of two different signals the ranks agree on terminated") {
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [](testing::Rank& rank) {
          const auto backend = comm::join_good(rank);
          Agreed agreed(rank.rank(), 2, 0.05);
          agreed.request_step = 2;
          agreed.request = rank.rank() == 0 ? ExitCode::interrupted : ExitCode::terminated;
          agreed.run(*backend);
          require(agreed.agreement.stopped_by() == ExitCode::terminated, "stopped by");
          require(agreed.fit.notes.steps.size() == 3, "steps");
        })) == "");
}

TEST_CASE("checkpoints by time are written after the same step on all ranks, by the clock of rank 0") {
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [](testing::Rank& rank) {
          const auto backend = comm::join_good(rank);
          Agreed agreed(rank.rank(), 2, rank.rank() == 0 ? 0.05 : 7.5, 0.9);
          agreed.run(*backend);
          // Due 18 steps after the start and after each of them; at the end too.
          require_equal(agreed.committed(), {25, 45, 60}, "commits:");
          if (rank.rank() == 0) require_equal(agreed.fit.saved.steps, {25, 45, 60}, "commits of rank 0:");
        })) == "");
}

TEST_CASE("a rank without peers decides after every step, and no step waits for it") {
  Agreed agreed(0, 1, 0.001);
  agreed.request_step = 7;
  agreed.request = ExitCode::interrupted;
  bool waited = false;
  agreed.fit.notes.at_step = [&] {
    waited = waited || agreed.agreement.needs_sync(static_cast<int64_t>(agreed.fit.notes.steps.size()));
  };
  const auto summary = agreed.fit.run_single({std::nullopt, 60, false, {0}});
  CHECK(summary.steps == 7);
  CHECK(agreed.exchanges == Steps{1, 2, 3, 4, 5, 6, 7});
  CHECK(agreed.agreement.stopped_by() == ExitCode::interrupted);
  CHECK_FALSE(waited);
}

TEST_CASE("checkpoints by steps: in the middle of an epoch with its position, and once where several are due") {
  Agreed agreed(0, 1, 0.001);
  agreed.fit.run_single({std::nullopt, 60, false, CheckpointRule{1, 8}});
  CHECK(agreed.committed() == Steps{8, 16, 24, 32, 40, 48, 56, 60});
  CHECK(agreed.fit.saved.positions[2].step_of_epoch == 24);
  CHECK(agreed.fit.saved.positions[2].totals.samples == 24);
  CHECK(agreed.fit.saved.positions[4].step_of_epoch == 40);
  CHECK(agreed.fit.saved.positions[5].epoch == 1);
  CHECK(agreed.fit.saved.positions[5].totals.samples == 8);
}

}  // namespace
}  // namespace ddprun::train
