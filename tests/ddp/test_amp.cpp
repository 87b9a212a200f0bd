// Autocast and GradScaler in a program that is not ours. amp_parity.py compares them with Python's.
#include <doctest/doctest.h>

#include <string>

#include "ddp/launched.hpp"
#include "support/golden.hpp"

namespace ddprun::testing {
namespace {

// The ranks' lines without "rank N: ", which must be equal; the one that is.
std::string same_on_all(int ranks, const ProcessResult& result) {
  const auto lines = sorted_lines(result);
  REQUIRE(lines.size() == static_cast<std::size_t>(ranks));
  for (const std::string& line : lines) CHECK(line.substr(8) == lines[0].substr(8));
  return lines[0].substr(8);
}

TEST_CASE("an overflow on one rank skips the step on all, and the replicas stay equal") {
  for (const auto& [ranks, backend] : {std::pair{1, "gloo"}, {2, "gloo"}, {3, "shm"}, {4, "gloo"}}) {
    CAPTURE(ranks);
    const std::string line = same_on_all(ranks, run(ranks, "ddp", backend));
    CHECK_MESSAGE(line.starts_with("++-+-+ 2 "), line);
  }
}

TEST_CASE("with a group, ranks with gradients of their own skip the same steps") {
  for (const int ranks : {2, 3}) {
    CHECK(same_on_all(ranks, run(ranks, "own_gradients")) == "+-+ 4 0x0p+0 0x0p+0");
  }
}

TEST_CASE("a scaler continues from a state, and does nothing when it is not enabled") {
  const auto result = run(1, "state");
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(result.out == "8, then 16\noff: 1, 0 numbers, -1\n");
}

TEST_CASE("wrong calls are errors that say what to do") {
  const auto result = run(1, "misuse");
  REQUIRE_MESSAGE(result.code == 0, result.err);
  check_golden("ddp/amp_misuse.txt", result.out);
}

TEST_CASE("options and states out of range are errors") {
  const auto result = run(1, "out_of_range");
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(result.out.empty());
}

}  // namespace
}  // namespace ddprun::testing
