// How configs and settings reach a command: by name, by --set, through pipes.
#include <doctest/doctest.h>
#include <sched.h>

#include <filesystem>
#include <regex>

#include "e2e/program.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

// The shell command on `argv`, as "$0" "$@" or the like.
ProcessResult run_in_shell(const Workplace& place, const std::string& command, const Argv& argv) {
  return place.run(Argv{"/bin/bash", "-c", command} + argv);
}

}  // namespace

TEST_CASE("a config needs no --config, before or after other options, for each command that takes one") {
  Workplace place;
  const std::string config = place.config(kLinearOnTwoRanks);
  const std::vector<std::string> shared = {"--set", "train.steps=1", "--set",
                                           "experiment.output=" + place.runs().string()};
  const auto check = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), shared.begin(), shared.end());
    const auto result = place.ddprun(arguments);
    CHECK_MESSAGE(result.code == 0, result.err);
    return result;
  };
  const auto has_ranks = [](const ProcessResult& result, const std::string& count) {
    return std::regex_search(result.out, std::regex("\nworld size +" + count + "\n"));
  };
  CHECK(has_ranks(check({config}), "2"));
  const std::string run = place.new_run().string();
  CHECK(has_ranks(check({"--nproc", "1", config}), "1"));
  CHECK(contains(check({"validate", "--config", config}).out, ": ok"));
  CHECK(contains(check({"evaluate", config, "--checkpoint", run}).out, "test loss"));
}

TEST_CASE("more ranks than cores are allowed, and a line says what they cost") {
  Workplace place;
  cpu_set_t cores;
  REQUIRE(::sched_getaffinity(0, sizeof cores, &cores) == 0);
  int core = 0;
  while (!CPU_ISSET(core, &cores)) ++core;
  const auto result = place.run(Argv{"/usr/bin/taskset", "-c", std::to_string(core)} +
                                place.training(place.config(kLinearOnTwoRanks), {"train.steps=1", "launch.nproc=4"}));
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK_MESSAGE(contains(result.err, "4 ranks share 1 core: "), result.err);
  CHECK(contains(result.err, "a step may take 4 times as long, or more"));
}

TEST_CASE("validate prints ok and starts and creates nothing") {
  Workplace place;
  const std::string config = place.config(kLinearOnTwoRanks);
  const auto result = place.ddprun({"validate", config, "--set", "experiment.output=" + place.runs().string()});
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  CHECK(contains(result.out, config + ": ok"));
  CHECK(contains(result.out, "2 ranks"));
  CHECK_FALSE(std::filesystem::exists(place.runs()));
  CHECK(place.leftovers().empty());
}

TEST_CASE("validate checks each of several files, and returns the code of the first error") {
  Workplace place;
  const auto edited = [&](const std::string& from, const std::string& to) {
    return std::regex_replace(kLinearOnTwoRanks, std::regex(from), to);
  };
  const std::string good = place.config(kLinearOnTwoRanks, "good"), bad = place.config(edited("ring", "rign"), "bad"),
                    missing = place.config(edited("gloo", "glo"), "missing");
  const auto result = place.ddprun({"validate", missing, bad, good});
  CHECK(result.code == 3);
  CHECK(result.out == good + ": ok: 2 ranks, 32 samples per rank and step\n");
  CHECK_MESSAGE(contains(result.err, missing + ":5:11: comm.backend = \"glo\": "), result.err);
  CHECK_MESSAGE(contains(result.err, bad + ":6:13: comm.algorithm = \"rign\": "), result.err);
  CHECK(place.ddprun({"validate", good, bad, missing}).code == 2);
  CHECK(place.ddprun({"validate", good, good}).code == 0);
}

TEST_CASE("one rank on the command line of a strategy that trains in one process is allowed") {
  const Workplace place;
  const std::string config = place.config(kLinearOnTwoRanks);
  for (const char* kind : {"strategy.kind=single", "strategy.kind=dp"}) {
    const auto result = place.run(place.training(config, {kind, "train.steps=1"}) + Argv{"-n", "1"});
    CHECK_MESSAGE(result.code == 0, result.err);
  }
}

TEST_CASE("--set overrides keys") {
  Workplace place;
  const std::string config = place.config(kLinearOnTwoRanks);
  const auto result = place.ddprun({"validate", config, "--set", "launch.nproc=4", "--set", "data.batch_size=32"});
  CHECK(result.code == 0);
  CHECK_MESSAGE(contains(result.out, "4 ranks, 8 samples"), result.out);
  const auto spaced = place.ddprun({"validate", config, "--set", "launch.nproc = 4", "--set", " data.batch_size =32 "});
  CHECK(spaced.out == result.out);
}

TEST_CASE("a config from a redirected file trains; one from a pipe is validated, and refused for a run") {
  Workplace place;
  const std::string config = place.config(kLinearOnTwoRanks);
  const std::string piped = "cat " + config + " | \"$0\" \"$@\"", redirected = "\"$0\" \"$@\" < " + config;
  const auto trained =
      run_in_shell(place, redirected, place.training("/dev/stdin", {"data.options.samples=128", "train.epochs=1"}));
  CHECK_MESSAGE(trained.code == 0, trained.err);
  CHECK(contains(trained.err, "world size  2"));
  const auto valid = run_in_shell(place, piped, {program(), "validate", "/dev/stdin"});
  CHECK_MESSAGE(valid.code == 0, valid.err);
  const auto refused = run_in_shell(place, piped, place.training("/dev/stdin"));
  CHECK(refused.code == 2);
  CHECK(refused.err == "/dev/stdin: can be read only once, and several processes read it; write it into a file\n");
  CHECK(place.leftovers().empty());
}

TEST_CASE("keys that the strategy does not use are allowed, and reported") {
  Workplace place;
  const auto result =
      place.run(place.training(place.config(kLinearOnTwoRanks), {"strategy.kind=single", "data.options.samples=64"}));
  CHECK(result.code == 0);
  CHECK_MESSAGE(
      contains(result.err,
               "not used by strategy \"single\" on device \"cpu\": comm.algorithm, comm.backend, launch.nproc"),
      result.err);
}
