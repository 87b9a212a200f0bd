#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "support/process.hpp"
#include "support/text.hpp"

namespace {

using namespace ddprun::testing;

// Three ranks under the real torchrun, which picks a free port of this host.
ProcessResult torchrun(const std::vector<std::string>& options, const std::string& test) {
  if (!std::filesystem::exists(TORCHRUN)) {
    std::cerr << "skipped: there is no torchrun at " << TORCHRUN << "\n";
    std::exit(77);
  }
  std::vector<std::string> command = {TORCHRUN, "--standalone", "--nproc-per-node=3", "--no-python"};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {C10D_RANK, test});
  Process process(command, {"OMP_NUM_THREADS=1"});
  return process.wait(std::chrono::seconds(120));
}

TEST_CASE("ranks started by torchrun are discovered and meet in its store") {
  const auto result = torchrun({}, "meet");
  CHECK_MESSAGE(result.code == 0, result.err);
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(contains(result.out, "rank " + std::to_string(rank) + " ok in attempt 0\n"));
  }
}

TEST_CASE("a group that torchrun restarted does not join the store of the attempt before") {
  const auto result = torchrun({"--max-restarts=1"}, "restart");
  CHECK_MESSAGE(result.code == 0, result.err);
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(contains(result.out, "rank " + std::to_string(rank) + " ok in attempt 1\n"));
  }
}

}  // namespace
