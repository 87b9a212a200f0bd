#include "ddp/launched.hpp"

namespace ddprun::testing {
namespace {

TEST_CASE("join: ranks with different numbers of steps get the weights of one process that computes all steps") {
  for (const auto& [act, reference] :
       {std::pair{"uneven", "expected"}, std::pair{"uneven_active", "expected_active"}}) {
    CAPTURE(act);
    const auto expected = states_in(run(1, reference).out);
    REQUIRE(expected.size() == 1);
    const auto result = run(2, act);
    REQUIRE_MESSAGE(result.code == 0, result.err);
    const auto states = states_in(result.out);
    REQUIRE(states.size() == 2);
    for (const auto& state : states) {
      CHECK(std::abs(state.first - expected[0].first) < 1e-5);
      CHECK(std::abs(state.second - expected[0].second) < 1e-5);
    }
  }
  CHECK(run(1, "expected").out != run(1, "expected_active").out);
}

TEST_CASE("join: all ranks end with the same weights and buffers, with any backend") {
  for (const char* backend : {"gloo", "shm"}) {
    for (const char* act : {"uneven", "uneven_norm", "uneven_adam"}) {
      CAPTURE(backend);
      CAPTURE(act);
      const auto result = run(3, act, backend);
      REQUIRE_MESSAGE(result.code == 0, result.err);
      const auto states = states_in(result.out);
      REQUIRE(states.size() == 3);
      CHECK(states[1] == states[0]);
      CHECK(states[2] == states[0]);
    }
  }
}

TEST_CASE("join: other collectives of a step") {
  const auto result = run(2, "more_collectives");
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(contains(result.out, "[rank1] 7 samples\n"));
  CHECK(result.out.size() == 2 * std::string("7 samples\n").size() + std::string("[rank1] ").size());
}

TEST_CASE("join: a rank without inputs is an error on request") {
  const auto refused = run(2, "uneven_refused");
  CHECK(refused.code == 1);
  CHECK_MESSAGE(contains(refused.err, "join: rank 0 has no more inputs, but others have"), refused.err);
  const auto caught = run(2, "uneven_caught");
  REQUIRE_MESSAGE(caught.code == 0, caught.err);
  const auto states = states_in(caught.out);
  REQUIRE(states.size() == 2);
  CHECK(states[0] == states[1]);
}

}  // namespace
}  // namespace ddprun::testing
