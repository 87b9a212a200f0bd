// The library is a guest in the program: it leaves the program's signals, handlers and processes as they are.
#include <csignal>

#include "ddp/env_launched.hpp"
#include "support/text.hpp"

namespace ddprun::testing {
namespace {

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
  for (const auto& result : run_by_environment(2, "twice")) {
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

// Sends the signal when all ranks are ready.
ProcessResult stop(const std::string& act, int signal, int ranks = 2, const Words& options = {}) {
  Words command = {DDPRUN_PROGRAM, "launch", "-n", std::to_string(ranks)};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {USER_PROGRAM, act});
  Process launcher(command, {"OMP_NUM_THREADS=1"});
  REQUIRE_MESSAGE(eventually([&] { return count_of(launcher.out(), "ready\n") == static_cast<std::size_t>(ranks); }),
                  launcher.err());
  launcher.send(signal);
  return launcher.wait(std::chrono::seconds(60));
}

TEST_CASE("a signal to the launcher reaches the program, which saves and ends") {
  for (const auto& [signal, name, code] :
       {std::tuple{SIGTERM, "SIGTERM", 143}, {SIGINT, "SIGINT", 130}, {SIGUSR1, "SIGTERM", 143}}) {
    const auto result = stop("train_until_signal", signal);
    CHECK(result.code == code);
    CHECK_MESSAGE(contains(result.out, "saved\n"), result.out);
    CHECK_MESSAGE(contains(result.err, "ddprun: stopping: the ranks get " + std::string(name) +
                                           ", and have 30 s to end (a second signal ends them at once)\n"),
                  result.err);
    CHECK(last_line(result.err).ends_with("ed; all ranks stopped"));
  }
}

TEST_CASE("a rank has the whole grace to save, also if other ranks end with an error meanwhile") {
  const auto result = stop("save_alone", SIGTERM, 3);
  CHECK(result.code == 143);
  CHECK(last_line(result.err) == "ddprun: terminated; all ranks stopped");
  CHECK_MESSAGE(contains(result.out, "saved\n"), result.out);
  CHECK(last_line(stop("save_alone", SIGTERM, 3, {"--grace", "200ms"}).err) ==
        "ddprun: terminated; the ranks were killed, as some had not ended after 0.2 s (--grace)");
}

TEST_CASE("a program without a handler ends by the signal, and one that does not end is killed after --grace") {
  const auto by_signal = stop("hang", SIGTERM);
  CHECK(by_signal.code == 143);
  CHECK(last_line(by_signal.err) == "ddprun: terminated; all ranks stopped");
  const auto killed = stop("hang_on", SIGTERM, 2, {"--grace", "200ms"});
  CHECK(killed.code == 143);
  CHECK_MESSAGE(contains(killed.err, "and have 0.2 s to end"), killed.err);
  CHECK(last_line(killed.err) ==
        "ddprun: terminated; the ranks were killed, as some had not ended after 0.2 s (--grace)");
}

TEST_CASE("--grace is a duration") {
  const auto result = Process({DDPRUN_PROGRAM, "launch", "--grace", "soon", USER_PROGRAM, "hang"}, {}).wait();
  CHECK(result.code == 2);
  CHECK_MESSAGE(contains(result.err, "--grace soon: expected a duration of at most 24h, such as \"30s\""), result.err);
}

TEST_CASE("the exit code of the program is that of the launcher") {
  for (const int code : {1, 7, 255}) {
    const Words command = {DDPRUN_PROGRAM, "launch", "-n", "2", "sh", "-c", "exit " + std::to_string(code)};
    const auto result = Process(command, {}).wait(std::chrono::seconds(60));
    CHECK(result.code == code);
    CHECK_MESSAGE(contains(last_line(result.err), "exited with code " + std::to_string(code)), result.err);
  }
}

TEST_CASE("a rank that ends alone is named, with its code, and not those that lose it") {
  for (const int ranks : {2, 3}) {
    const auto result = run(ranks, "exit_alone");
    CHECK(result.code == 7);
    CHECK_MESSAGE(contains(last_line(result.err), "ddprun: failed: rank 1 ("), result.err);
    CHECK_MESSAGE(contains(last_line(result.err), "exited with code 7"), result.err);
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
