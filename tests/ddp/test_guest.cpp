// The library is a guest in the program: it leaves the program's signals, handlers and processes as they are.
#include <csignal>
#include <memory>

#include "ddp/launched.hpp"
#include "launch/free_port.hpp"
#include "launch/text.hpp"

namespace ddprun::testing {
namespace {

using launch::testing::last_line;

const std::string kAborted = ": killed by signal 6 (SIGABRT)";

TEST_CASE("init() again makes another group of the same ranks, after the first has ended or not") {
  for (const auto& [ranks, backend] : {std::pair{1, "gloo"}, {2, "gloo"}, {3, "shm"}}) {
    CAPTURE(ranks);
    const auto lines = sorted_lines(run(ranks, "twice", backend));
    REQUIRE(lines.size() == 6U * static_cast<std::size_t>(ranks));
    for (const std::string& line : lines) CHECK_MESSAGE(line.ends_with(": " + std::to_string(ranks)), line);
  }
}

TEST_CASE("init() again under another launcher is one clear error") {
  const std::string port = std::to_string(launch::testing::FreePort().number);
  std::vector<std::unique_ptr<Process>> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.push_back(std::make_unique<Process>(
        Words{USER_PROGRAM, "twice"},
        Words{"RANK=" + std::to_string(rank), "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port}));
  }
  for (const auto& rank : ranks) {
    const auto result = rank->wait(std::chrono::seconds(60));
    CHECK(result.code == 128 + SIGABRT);
    CHECK_MESSAGE(contains(result.err, "init() is called a second time, and env:// has started the ranks"), result.err);
  }
}

TEST_CASE("std::set_terminate stays the program's, before init() and after it, and the launcher names the rank") {
  for (const std::string act : {"set_terminate_before", "set_terminate_after"}) {
    CAPTURE(act);
    const auto result = run(2, act);
    CHECK(result.code == 5);
    CHECK_MESSAGE(contains(result.err, "[rank1] my crash handler\n"), result.err);
    CHECK_MESSAGE(contains(last_line(result.err), "ddprun: failed: rank 1 ("), result.err);
    CHECK_MESSAGE(contains(last_line(result.err), kAborted), result.err);
  }
}

TEST_CASE("init() changes no signal and no handler") {
  for (const int ranks : {1, 2}) CHECK(run(ranks, "dispositions").out.empty());
}

TEST_CASE("a process that a rank has forked does not end the job, however it ends") {
  for (const auto& [act, end] : {std::pair{"child_throws", "signal 6"},
                                 {"child_throws_exit_on_error", "signal 6"},
                                 {"child_returns", "code 7"},
                                 {"child_joins", "code 0"}}) {
    CAPTURE(act);
    const auto result = run(2, act);
    REQUIRE_MESSAGE(result.code == 0, result.err);
    CHECK_MESSAGE(contains(result.out, "[rank1] child: " + std::string(end) + "\n"), result.out);
    CHECK_MESSAGE(contains(result.out, "[rank1] sum: 2\n"), result.out);
    const std::string refused = "init() is called in a process that rank 1 has forked";
    CHECK(contains(result.out, refused) == (act == std::string("child_joins")));
  }
}

TEST_CASE("a script may be the rank, and start the program") {
  Words command = {DDPRUN_PROGRAM, "launch", "-n", "2", "sh", "-c", "\"$@\"; code=$?; exit $code", "sh"};
  command.insert(command.end(), {USER_PROGRAM, "twice"});
  const auto result = Process(command, {"OMP_NUM_THREADS=1"}).wait(std::chrono::seconds(60));
  CHECK_MESSAGE(result.code == 0, result.err);
}

}  // namespace
}  // namespace ddprun::testing
