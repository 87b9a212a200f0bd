#include "ddp/launched.hpp"

namespace ddprun::testing {
namespace {

double loss_in(const std::string& out) {
  double loss = NAN;
  if (const auto at = out.find("loss "); at != std::string::npos) std::sscanf(out.c_str() + at, "loss %lf", &loss);
  return loss;
}

TEST_CASE("a hook that averages gives the weights of no hook") {
  const auto plain = run(2, "hooked_plain"), hooked = run(2, "hooked_allreduce");
  REQUIRE_MESSAGE(plain.code == 0, plain.err);
  REQUIRE_MESSAGE(hooked.code == 0, hooked.err);
  CHECK(states_in(plain.out)[0] == states_in(hooked.out)[0]);  // 2 ranks: the division is exact
  const auto captured = run(2, "hooked_captured");
  REQUIRE_MESSAGE(captured.code == 0, captured.err);
  CHECK(states_in(plain.out)[0] == states_in(captured.out)[0]);
}

TEST_CASE("a hook may assign its result instead of writing it into the bucket") {
  const auto plain = run(2, "hooked_plain");
  REQUIRE_MESSAGE(plain.code == 0, plain.err);
  for (const std::string act : {"hook_assigns_buffer", "hook_assigns_gradients"}) {
    const auto result = run(2, act);
    REQUIRE_MESSAGE(result.code == 0, result.err);
    const auto states = states_in(result.out), expected = states_in(plain.out);
    REQUIRE(states.size() == 2);
    CHECK(states[0] == states[1]);
    CHECK(std::abs(states[0].first - expected[0].first) < 1e-5);
  }
  const auto other = run(2, "hook_assigns_other");
  CHECK(other.code == 2);
  CHECK_MESSAGE(contains(other.err, "assigned to bucket.buffer a tensor Double ["), other.err);
}

TEST_CASE("compressed gradients: equal weights on all ranks, about those without compression") {
  for (const int ranks : {1, 2, 3}) {
    CAPTURE(ranks);
    const auto plain = run(ranks, "hooked_plain");
    REQUIRE_MESSAGE(plain.code == 0, plain.err);
    for (const auto& [act, backend] :
         {std::pair{"hooked_fp16", "gloo"}, std::pair{"hooked_bf16", "gloo"}, std::pair{"hooked_bf16", "shm"}}) {
      CAPTURE(act);
      const auto result = run(ranks, act, backend);
      REQUIRE_MESSAGE(result.code == 0, result.err);
      const auto states = states_in(result.out);
      REQUIRE(states.size() == static_cast<std::size_t>(ranks));
      for (const auto& state : states) CHECK(state == states[0]);
      CHECK(std::abs(loss_in(result.out) - loss_in(plain.out)) < 1e-2);
      CHECK(states[0] != states_in(plain.out)[0]);  // the weights: the loss is printed with too few digits for this
    }
  }
}

TEST_CASE("PowerSGD: equal weights on all ranks, and it learns") {
  for (const int ranks : {2, 3}) {
    const auto result = run(ranks, "hooked_power_sgd");
    REQUIRE_MESSAGE(result.code == 0, result.err);
    const auto states = states_in(result.out);
    REQUIRE(states.size() == static_cast<std::size_t>(ranks));
    for (const auto& state : states) CHECK(state == states[0]);
    CHECK(loss_in(result.out) < 1.0);
  }
}

TEST_CASE("PowerSGD forgets an overflow") {
  const auto result = run(2, "power_sgd_overflow");
  REQUIRE_MESSAGE(result.code == 0, result.err);
  const auto states = states_in(result.out);
  REQUIRE(states.size() == 2);
  CHECK(states[0] == states[1]);
  CHECK(loss_in(result.out) < 1.0);
}

TEST_CASE("what a hook of the user's own sees, and that its result counts") {
  const auto result = run(2, "hook_seen");
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK_MESSAGE(contains(result.out, "[rank1] 0 1last 3\n"), result.out);
  CHECK(result.out.size() == 2 * std::string("0 1last 3\n").size() + std::string("[rank1] ").size());
}

TEST_CASE("a hook of three stages gives the weights of no hook, and only communicates in the communication thread") {
  const auto plain = run(2, "hooked_plain"), staged = run(2, "hook_stages");
  REQUIRE_MESSAGE(plain.code == 0, plain.err);
  REQUIRE_MESSAGE(staged.code == 0, staged.err);
  CHECK(states_in(plain.out)[0] == states_in(staged.out)[0]);
  // 10 steps: one bucket in the first, then two.
  CHECK_MESSAGE(contains(staged.out, "[rank1] stages 19 19 19, fresh 3, elsewhere 0, here 0\n"), staged.out);
}

TEST_CASE("errors of hooks: one line on all ranks, and no rank hangs") {
  const auto throws = run(2, "hook_throws");
  CHECK(throws.code == 1);
  CHECK_MESSAGE(contains(throws.err, "the hook is broken"), throws.err);
  CHECK(contains(throws.err, "rank 1"));
  const auto prepare = run(2, "hook_prepare_throws");
  CHECK(prepare.code == 1);
  CHECK_MESSAGE(contains(prepare.err, "the first stage is broken"), prepare.err);
  CHECK(contains(prepare.err, "rank 1"));
  const auto twice = run(2, "hook_twice");
  CHECK(twice.code == 2);
  CHECK_MESSAGE(contains(twice.err, "register_comm_hook: there is a hook already"), twice.err);
  const auto empty = run(1, "hook_empty");
  CHECK(empty.code == 2);
  CHECK_MESSAGE(contains(empty.err, "register_comm_hook: the hook has no stage reduce"), empty.err);
  const auto early = run(1, "power_sgd_early");
  CHECK(early.code == 2);
  CHECK_MESSAGE(contains(early.err, "PowerSgdOptions::start_iter: expected at least 2"), early.err);
}

}  // namespace
}  // namespace ddprun::testing
