// A user's program whose ranks die, and go on.
#include <set>

#include "ddp/launched.hpp"

namespace ddprun::testing {
namespace {

const std::string kRefused = "train_elastic: ";

ProcessResult run_elastic(int ranks, const Words& variables, const Words& options = {}) {
  Words command = {DDPRUN_PROGRAM, "launch", "-n", std::to_string(ranks), "--nnodes", "1:1"};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {USER_PROGRAM, "elastic"});
  Words all = {"OMP_NUM_THREADS=1"};
  all.insert(all.end(), variables.begin(), variables.end());
  return Process(command, all).wait(std::chrono::seconds(60));
}

// The line that all ranks print which are left: their number and the hash.
std::string line_of(const ProcessResult& result) {
  const Words lines = lines_of(result);
  REQUIRE_MESSAGE(!lines.empty(), result.err);
  CHECK_MESSAGE(lines == Words(static_cast<std::size_t>(lines[0][0] - '0'), lines[0]), result.err);
  return lines[0];
}

std::string hash_in(const std::string& line) {
  return line.substr(line.find("ranks ") + 6);
}

TEST_CASE("a program goes on after its ranks have died, and ends with the same bits") {
  const std::string hash = hash_in(line_of(run(1, "elastic")));
  CHECK(line_of(run_elastic(3, {"DDPRUN_BACKEND=gloo"})) == "3 ranks " + hash);
  for (const std::string backend : {"gloo", "shm"}) {
    CAPTURE(backend);
    const ProcessResult result =
        run_elastic(4, {"DDPRUN_BACKEND=" + backend, "DEATHS=1 3 before 0 5 inside 2 7 after"});
    CHECK(line_of(result) == "1 ranks " + hash);
    CHECK_MESSAGE(contains(result.err, "step 6 phase forward: killed by signal 9 (SIGKILL); 2 ranks go on"),
                  result.err);
    CHECK_MESSAGE(contains(result.err, "3 ranks go on after step 3, "), result.err);
    CHECK_MESSAGE(contains(result.err, "2 ranks go on after step 5, "), result.err);
  }
}

TEST_CASE("a rank that is started again joins a program") {
  const Words slow = {"STEPS=150", "PAUSE=20", "DDPRUN_BACKEND=gloo"};
  Words deaths = slow;
  deaths.push_back("DEATHS=0 3 inside");
  const ProcessResult result = run_elastic(3, deaths, {"--max-restarts", "1"});
  CHECK_MESSAGE(contains(result.err, "has been started again; 3 ranks go on"), result.err);
  CHECK_MESSAGE(contains(result.err, "joins: 1, this rank is not one of those that train"), result.err);
  CHECK(line_of(result) == "3 ranks " + hash_in(line_of(run_elastic(2, {"STEPS=150", "DDPRUN_BACKEND=shm"}))));
}

TEST_CASE("a program begins at the step that it names") {
  const Words later = {"DDPRUN_BACKEND=shm", "FIRST=3", "STEPS=13"};
  Words with_death = later;
  with_death.push_back("DEATHS=1 5 before");
  CHECK(hash_in(line_of(run_elastic(3, with_death))) == hash_in(line_of(run_elastic(2, later))));
  CHECK(line_of(run_elastic(2, later)) != line_of(run_elastic(2, {"DDPRUN_BACKEND=shm"})));  // other samples
}

TEST_CASE("what cannot survive has one clear error") {
  const Words lines = lines_of(run(2, "elastic_refused"));
  const Words expected = {
      kRefused + "the group must be that of init()",
      kRefused + "set DistributedDataParallelOptions::virtual_ranks",
      kRefused + "not with broadcast_buffers = false: buffers would be lost with their rank",
      kRefused + "not with ZeroRedundancyOptimizer: a part of the state would be lost with its rank",
      kRefused + "the optimizer has a parameter that is not one of the module's",
      kRefused + "a step must call for_each_virtual_rank() once",
      kRefused + "it can be called once",
      kRefused + "not with a group that was split: its parts would be lost with a rank"};
  for (const std::string& line : expected) {
    CHECK_MESSAGE(std::count(lines.begin(), lines.end(), line) == 2, line);
  }
  CHECK(lines.size() == 2 * expected.size());
}

TEST_CASE("a collective after the reduction of a step is an error when a rank dies in it") {
  const ProcessResult result =
      Process({DDPRUN_PROGRAM, "launch", "-n", "2", "--nnodes", "1:1", USER_PROGRAM, "elastic_late"},
              {"OMP_NUM_THREADS=1", "DDPRUN_BACKEND=gloo"})
          .wait(std::chrono::seconds(60));
  CHECK(result.code == 1);
  CHECK_MESSAGE(contains(result.err, "a rank has died in a collective after for_each_virtual_rank()"), result.err);
}

}  // namespace
}  // namespace ddprun::testing
