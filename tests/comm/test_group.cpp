#include "comm/group.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <thread>

#include "joined.hpp"
#include "support/text.hpp"

namespace ddprun::comm {
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
  JoinOptions options = options_of(rank);
  options.deadline = deadline;
  return join(fake("good"), options);
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

TEST_CASE("a group of one rank waits for nobody") {
  const Group alone;
  CHECK(alone.size() == 1);
  CHECK_FALSE(alone.has_backend());
  CHECK(alone.sum({1, 2}) == std::vector<double>{1, 2});
  CHECK(alone.gather(std::vector<int64_t>{3}) == std::vector<int64_t>{3});
  CHECK(alone.gather("text") == std::vector<std::string>{"text"});
  bool done = false;
  with_heartbeat_on_rank0(alone, "at work", [&] { done = true; });
  CHECK(done);
  alone.barrier();
  alone.check();
}

TEST_CASE("numbers are summed and gathered in rank order, and texts of any length") {
  CHECK(failures(run_ranks(3, As::processes, kDeadline, [](testing::Rank& rank) {
          const auto backend = join(rank);
          const Group group(*backend, kTimeout);
          const double mine = rank.rank() + 1;
          if (group.sum({mine, 10 * mine}) != std::vector<double>{6, 60}) throw std::runtime_error("a sum");
          if (group.gather(std::vector{mine, -mine}) != std::vector<double>{1, -1, 2, -2, 3, -3}) {
            throw std::runtime_error("numbers");
          }
          const std::string text(static_cast<std::size_t>(2 * rank.rank()), 'x');
          if (group.gather(text) != std::vector<std::string>{"", "xx", "xxxx"}) throw std::runtime_error("texts");
        })) == "");
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
            with_heartbeat({*backend, kTimeout}, "at work", work);
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
            with_heartbeat({*backend, kTimeout}, "at work", [&] { std::this_thread::sleep_for(time); });
            agree(*backend);
          }
        })) == "");
}

TEST_CASE("an exception of the work is thrown on its rank only, and the others do not wait forever") {
  const auto outcomes = run_ranks(2, As::processes, kDeadline, [](testing::Rank& rank) {
    const auto backend = join(rank);
    with_heartbeat_on_rank0({*backend, kTimeout}, "at work", [] {
      sleep();
      throw Error(ExitCode::failure, "no space");
    });
  });
  CHECK(outcomes[0].describe() == "rank 0: threw: no space");
  CHECK(outcomes[1].end == Outcome::End::threw);
  CHECK(outcomes[1].number == static_cast<int>(ExitCode::peer));
}

TEST_CASE("a rank that dies during its work is noticed") {
  const auto outcomes = run_ranks(2, As::processes, kDeadline, [](testing::Rank& rank) {
    const auto backend = join(rank);
    with_heartbeat_on_rank0({*backend, kTimeout}, "at work", [] {
      sleep();
      raise(SIGKILL);
    });
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
      with_heartbeat({*backend, timeout}, "at work", work);
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
    with_heartbeat({*backend, kTimeout}, "at work", [&] {
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
}  // namespace ddprun::comm
