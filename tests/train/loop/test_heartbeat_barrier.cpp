#include "train/tensor/rank_group.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <thread>

#include "comm/joined.hpp"
#include "support/text.hpp"

namespace ddprun::train {
namespace {

using namespace std::chrono_literals;
using testing::As;
using testing::failures;
using testing::Outcome;
using testing::run_ranks;

constexpr auto kDeadline = 60s;
constexpr auto kTimeout = 1500ms;

// With a timeout shorter than the work.
std::unique_ptr<CommBackend> join(testing::Rank& rank, std::chrono::milliseconds deadline = kTimeout) {
  comm::JoinOptions options = comm::options_of(rank);
  options.deadline = deadline;
  return comm::join(comm::fake("good"), options);
}

void sleep() {
  std::this_thread::sleep_for(5 * kTimeout / 4);
}

// One more collective, which requires that all ranks are at the same point.
void agree(CommBackend& backend) {
  int32_t one = 1;
  backend.allreduce({.send = &one, .recv = &one, .count = 1, .dtype = DType::int32}).wait(kTimeout);
  if (one != backend.size()) throw std::runtime_error("not all ranks are here");
}

TEST_CASE("work of one rank may take longer than a collective's timeout, and the others wait for its end") {
  for (const int worker : {0, 2}) {
    CAPTURE(worker);
    CHECK(failures(run_ranks(3, As::processes, kDeadline, [&](testing::Rank& rank) {
            const auto backend = join(rank);
            bool done = false;
            std::function<void()> work;
            if (rank.rank() == worker) {
              work = [&] {
                sleep();
                done = true;
              };
            }
            run_with_heartbeat(*backend, kTimeout, "at work", work);
            if (rank.rank() == worker && !done) throw std::runtime_error("the work was not done");
            agree(*backend);
          })) == "");
  }
}

TEST_CASE("all ranks may work, for different times, repeatedly") {
  CHECK(failures(run_ranks(3, As::processes, kDeadline, [&](testing::Rank& rank) {
          const auto backend = join(rank);
          for (int round = 0; round < 3; ++round) {
            const auto time = (rank.rank() + round) % 3 * (5 * kTimeout / 8);
            run_with_heartbeat(*backend, kTimeout, "at work", [&] { std::this_thread::sleep_for(time); });
            agree(*backend);
          }
        })) == "");
}

TEST_CASE("an exception of the work is thrown on its rank only, and the others do not wait forever") {
  const auto outcomes = run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
    const auto backend = join(rank);
    std::function<void()> work;
    if (rank.rank() == 0) {
      work = [] {
        sleep();
        throw Error(ExitCode::failure, "no space");
      };
    }
    run_with_heartbeat(*backend, kTimeout, "at work", work);
  });
  CHECK(outcomes[0].describe() == "rank 0: threw: no space");
  CHECK(outcomes[1].end == Outcome::End::threw);
  CHECK(outcomes[1].number == static_cast<int>(ExitCode::peer));
}

TEST_CASE("a rank that dies during its work is noticed") {
  const auto outcomes = run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
    const auto backend = join(rank);
    std::function<void()> work;
    if (rank.rank() == 0) {
      work = [] {
        sleep();
        raise(SIGKILL);
      };
    }
    run_with_heartbeat(*backend, kTimeout, "at work", work);
  });
  CHECK(outcomes[0].end == Outcome::End::killed);
  CHECK(outcomes[1].end == Outcome::End::threw);
  CHECK(outcomes[1].number == static_cast<int>(ExitCode::peer));
}

TEST_CASE("a rank whose work does not end is waited for ten timeouts, and named") {
  constexpr auto timeout = 800ms;
  const auto outcomes = run_ranks(3, As::processes, kDeadline, [&](testing::Rank& rank) {
    const auto backend = join(rank, timeout);
    std::function<void()> work;
    if (rank.rank() == 1) work = [&] { rank.meet(); };  // ends when the others have timed out
    try {
      run_with_heartbeat(*backend, timeout, "at work", work);
    } catch (const Error&) {
      if (rank.rank() != 1) rank.meet();
      throw;
    }
  });
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.end == Outcome::End::threw);
    CHECK(outcome.number == static_cast<int>(ExitCode::peer));
  }
  // Both check the time after the same heartbeat. If only one of them times out, the other loses its peer.
  const auto names = [&](std::size_t waits) {
    return testing::contains(outcomes[waits].error, "rank 1 has been at work for more than 10 times comm.timeout");
  };
  CHECK((names(0) || names(2)));
}

TEST_CASE("a rank that works when another dies ends its work, and then reports the other") {
  const auto outcomes = run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
    const auto backend = join(rank);
    if (rank.rank() == 1) raise(SIGKILL);
    run_with_heartbeat(*backend, kTimeout, "at work", [&] {
      sleep();
      rank.report("done");
    });
  });
  CHECK(outcomes[0].records == std::vector<std::string>{"done"});
  CHECK(outcomes[0].end == Outcome::End::threw);
  CHECK(testing::contains(outcomes[0].error, ": allgather 1 "));  // the first one that failed
  CHECK(outcomes[0].number == static_cast<int>(ExitCode::peer));
}

}  // namespace
}  // namespace ddprun::train
