// What `ddprun tune` refuses before it starts anything. tests/e2e/tune_test.cpp has the rest.
#include <doctest/doctest.h>

#include "support/process.hpp"
#include "support/text.hpp"

using namespace ddprun::testing;

namespace {

constexpr const char* kConfig =
    "[model]\nname = \"simplenet\"\n[data]\nname = \"mnist\"\n[strategy]\nkind = \"ddp\"\n[launch]\nnproc = 2\n";

}  // namespace

TEST_CASE("what a user gets wrong is one line, with exit code 2, and nothing is started") {
  const InTempDir folder;
  folder.write("exp.toml", kConfig);
  const auto check = [](std::vector<std::string> arguments, const std::string& part) {
    arguments.insert(arguments.begin(), TUNE_PROGRAM);
    const auto result = Process(arguments, {}).wait();
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    CHECK_MESSAGE(contains(result.err, part), result.err);
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
    CHECK_FALSE(std::filesystem::exists("runs"));
  };
  check({}, "--config");
  check({"nowhere.toml"}, "nowhere.toml");
  check({"exp.toml", "--set", "strategy.kind=dp"}, "strategy.kind = \"dp\": sends no gradients that tune could time");
  check({"exp.toml", "--set", "strategy.zero=1"}, "strategy.zero = 1: sends parameters too");
  check({"exp.toml", "--set", "launch.device=cuda"}, "a trace does not say when buckets on a GPU are full");
  check({"exp.toml", "--set", "comm.options.interface=lo", "--backend", "ucx"},
        "--backend ucx: comm.options are those of gloo; leave out one of the two");
  check({"exp.toml", "--nproc", "1"}, "tune: one rank sends nothing; give --nproc N");
  check({"exp.toml", "--compression", "int8"}, "--compression");
  check({"exp.toml", "--steps", "23"}, "--steps");
  check({"exp.toml", "--rounds", "1"}, "--rounds");
  check({"exp.toml", "--json", "nowhere/out.json"}, "nowhere/out.json: there is no folder nowhere");
  check({"exp.toml", "--nnodes", "2"}, "--node-rank is missing");
  check({"exp.toml", "--node-rank", "1"}, "--node-rank, --master-addr and --master-port are for several nodes");
}

TEST_CASE("the ranks of another launcher are refused") {
  const InTempDir folder;
  folder.write("exp.toml", kConfig);
  const auto result =
      Process({TUNE_PROGRAM, "exp.toml"}, {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500"})
          .wait();
  CHECK(result.code == 2);
  CHECK_MESSAGE(contains(result.err, "has started 2 ranks; start it once on each host"), result.err);
}
