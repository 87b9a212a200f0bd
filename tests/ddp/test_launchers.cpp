// How a program of the library is started: `ddprun launch -n`, and torchrun.
#include <doctest/doctest.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "support/process.hpp"
#include "support/text.hpp"

namespace ddprun::testing {
namespace {

using Words = std::vector<std::string>;

ProcessResult run(const Words& command, const Words& variables = {"OMP_NUM_THREADS=1"}) {
  return Process(command, variables).wait(std::chrono::seconds(120));
}
ProcessResult ddprun(Words arguments, const Words& variables = {"OMP_NUM_THREADS=1"}) {
  arguments.insert(arguments.begin(), DDPRUN_PROGRAM);
  return run(arguments, variables);
}

// Both ranks of a world of two have printed the line of the act "sum".
void check_two_ranks(const ProcessResult& result) {
  REQUIRE_MESSAGE(result.code == 0, result.err);
  for (const char* line : {"rank 0 of 2: 3\n", "rank 1 of 2: 3\n"})
    CHECK_MESSAGE(contains(result.out, line), result.out);
}

TEST_CASE("ddprun launch -n 2 starts two ranks, among other options too") {
  check_two_ranks(ddprun({"launch", "-n", "2", USER_PROGRAM, "sum"}));
  check_two_ranks(ddprun({"launch", "-n2", "--nnodes", "1", "--max-restarts=0", USER_PROGRAM, "sum"}));
}

TEST_CASE("what follows the program is the program's, even options of ddprun launch") {
  const auto result = ddprun({"launch", "-n", "1", "/bin/echo", "-n", "5", "--nnodes", "7", "--help"});
  CHECK_MESSAGE(result.out == "5 --nnodes 7 --help", result.err);  // echo's own -n: no line break
}

TEST_CASE("-n is a number of ranks") {
  for (const std::string number : {"0", "two", "-1"}) {
    const auto result = ddprun({"launch", "-n", number, USER_PROGRAM, "sum"});
    CHECK(result.code == 2);
    CHECK_MESSAGE(contains(result.err, "ddprun: "), result.err);
    CHECK_MESSAGE(contains(result.err, "see ddprun launch --help"), result.err);
  }
  for (const Words& help : {Words{"launch", "--help"}, Words{"--help"}}) {
    CHECK_MESSAGE(contains(ddprun(help).out, "-n,--nproc,--nproc-per-node N"), ddprun(help).out);
  }
}

TEST_CASE("each rank computes with its share of the cores, unless OMP_NUM_THREADS says otherwise") {
  cpu_set_t cores;
  REQUIRE(sched_getaffinity(0, sizeof cores, &cores) == 0);
  const std::string share = std::to_string(std::max(1, CPU_COUNT(&cores) / 2)) + " threads\n";
  unsetenv("OMP_NUM_THREADS");
  const auto two = ddprun({"launch", "-n", "2", USER_PROGRAM, "threads"}, {});
  CHECK_MESSAGE(two.out == "[rank1] " + share, two.err);
  const auto set = ddprun({"launch", "-n", "2", USER_PROGRAM, "threads"}, {"OMP_NUM_THREADS=1"});
  CHECK_MESSAGE(set.out == "[rank1] 1 threads\n", set.err);
}

TEST_CASE("torchrun --no-python starts a program of the library, and reports its exit code") {
  if (!std::filesystem::exists(TORCHRUN)) {
    std::cout << "skipped: there is no torchrun at " TORCHRUN "\n";
    return;
  }
  const auto under_torchrun = [](const std::string& act) {
    return run({TORCHRUN, "--standalone", "--nproc-per-node=2", "--no-python", USER_PROGRAM, act});
  };
  check_two_ranks(under_torchrun("sum"));
  const auto throws = under_torchrun("throws");
  CHECK(throws.code != 0);
  CHECK_MESSAGE(contains(throws.err, "the disk is on fire"), throws.err);
  CHECK_MESSAGE(contains(throws.err, "exitcode  : 1"), throws.err);
}

}  // namespace
}  // namespace ddprun::testing
