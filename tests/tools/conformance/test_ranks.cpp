// The helper that runs ranks: it distinguishes each way to end, and nothing outlives its deadline.
#include <doctest/doctest.h>
#include <sys/types.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "ddprun/error.hpp"
#include "testing/ranks.hpp"

using namespace ddprun::testing;
using namespace std::chrono_literals;

namespace {

bool exists(pid_t pid) {
  return kill(pid, 0) == 0 || errno != ESRCH;
}

void sleep_for_ever() {
  while (true) std::this_thread::sleep_for(1s);
}

}  // namespace

TEST_CASE("ranks gather in rank order, round after round and on several channels at once") {
  for (const As as : {As::processes, As::threads}) {
    CAPTURE(name_of(as));
    const auto outcomes = run_ranks(4, as, 20s, [](Rank& rank) {
      const auto gather = [&rank](int channel) {
        for (int round = 0; round < 100; ++round) {
          const int mine = 1000 * channel + 10 * round + rank.rank();
          std::vector<int> all(rank.size());
          rank.allgather(&mine, sizeof mine, all.data(), channel);
          for (int peer = 0; peer < rank.size(); ++peer) {
            if (all[peer] != 1000 * channel + 10 * round + peer) throw std::runtime_error("wrong contribution");
          }
        }
      };
      std::thread other([&] { gather(1); });
      gather(0);
      other.join();
      rank.report("done " + std::to_string(rank.rank()));
    });
    CHECK(failures(outcomes) == "");
    for (int rank = 0; rank < 4; ++rank) {
      CHECK(outcomes[rank].rank == rank);
      CHECK(outcomes[rank].records == std::vector<std::string>{"done " + std::to_string(rank)});
    }
  }
}

TEST_CASE("records of any length and content arrive whole") {
  const std::string large(1 << 20, 'x');
  const auto outcomes = run_ranks(2, As::processes, 20s, [&](Rank& rank) {
    rank.report(large);
    rank.report("two\nlines");
    rank.report("");
  });
  CHECK(failures(outcomes) == "");
  for (const auto& outcome : outcomes) CHECK((outcome.records == std::vector<std::string>{large, "two\nlines", ""}));
}

TEST_CASE("an exception is reported with its text and its exit code") {
  for (const As as : {As::processes, As::threads}) {
    const auto outcomes = run_ranks(3, as, 20s, [](Rank& rank) {
      if (rank.rank() == 1) throw ddprun::Error(ddprun::ExitCode::peer, "lost it");
      if (rank.rank() == 2) throw std::runtime_error("plain");
    });
    CHECK(outcomes[0].ok());
    CHECK(outcomes[1].describe() == "rank 1: threw: lost it");
    CHECK(outcomes[1].number == 5);
    CHECK(outcomes[2].describe() == "rank 2: threw: plain");
    CHECK(outcomes[2].number == -1);
  }
}

TEST_CASE("a killed rank and an exited rank are distinguished, and keep their earlier records") {
  const auto outcomes = run_ranks(3, As::processes, 20s, [](Rank& rank) {
    rank.report("before");
    if (rank.rank() == 0) raise(SIGKILL);
    if (rank.rank() == 1) _exit(7);
  });
  CHECK(outcomes[0].describe() == "rank 0: killed by signal 9 (Killed)");
  CHECK(outcomes[1].describe() == "rank 1: exited with status 7");
  CHECK(outcomes[2].ok());
  for (const auto& outcome : outcomes) CHECK(outcome.records == std::vector<std::string>{"before"});
}

TEST_CASE("a rank that hangs is killed at the deadline, as process and as thread") {
  for (const As as : {As::processes, As::threads}) {
    CAPTURE(name_of(as));
    const auto outcomes = run_ranks(2, as, 1500ms, [](Rank& rank) {
      if (rank.rank() == 1) sleep_for_ever();
    });
    CHECK(outcomes[0].ok());
    CHECK(outcomes[1].end == Outcome::End::hung);
    CHECK_FALSE(exists(outcomes[1].pid));
  }
}

TEST_CASE("a gather ends when a peer is gone, long before the deadline") {
  const auto outcomes = run_ranks(2, As::processes, 60s, [](Rank& rank) {
    if (rank.rank() == 1) raise(SIGKILL);
    rank.meet();
  });
  CHECK(outcomes[0].error == "exchange: gave up waiting for rank 1: a rank is gone");
}

TEST_CASE("a gather of different sizes is refused") {
  const auto outcomes = run_ranks(2, As::processes, 20s, [](Rank& rank) {
    char all[64] = {};
    rank.allgather("12345678", rank.rank() == 0 ? 4 : 8, all);
  });
  CHECK(outcomes[0].error == "exchange: rank 0 has 4 bytes, rank 1 has 8");
}

TEST_CASE("a process that a rank leaves behind is found and killed") {
  const auto outcomes = run_ranks(1, As::processes, 20s, [](Rank& rank) {
    const pid_t child = fork();
    if (child == 0) sleep_for_ever();
    rank.report(std::to_string(child));
  });
  CHECK(outcomes[0].ok());
  CHECK(outcomes[0].left_processes);
  const pid_t stray = std::stoi(outcomes[0].records.at(0));
  for (int i = 0; i < 5000 && exists(stray); ++i) std::this_thread::sleep_for(1ms);
  CHECK_FALSE(exists(stray));
}
