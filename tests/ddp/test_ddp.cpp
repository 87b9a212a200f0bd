// DistributedDataParallel in a program that is not ours, started by `ddprun launch` and by env://.
#include "ddp/env_launched.hpp"

namespace ddprun::testing {
namespace {

TEST_CASE("training on one rank, two and three gives the same weights") {
  check_same_in_all_worlds("train");
}

TEST_CASE("a list of parameters, and a module of TorchScript") {
  check_same_in_all_worlds("list");
  CHECK(states_in(run(1, "list").out) == states_in(run(1, "train").out));
  check_same_in_all_worlds("script");
  const auto derived = run(2, "derived_parameter");
  CHECK(derived.code == 2);
  CHECK_MESSAGE(contains(derived.err, "parameter 1 of DistributedDataParallel is the result of a computation"),
                derived.err);
}

TEST_CASE("a group that is not assigned to has one clear error") {
  const Words lines = lines_of(run(1, "empty_group"));
  CHECK(lines == Words(3, "this Group has no ranks: assign what ddprun::init() returns to it first"));
}

TEST_CASE("gradients of several backwards are averaged once, and give the same weights") {
  check_same_in_all_worlds("accumulate");
  const auto whole = states_in(run(1, "train").out), parts = states_in(run(1, "accumulate").out);
  CHECK(std::abs(whole[0].second - parts[0].second) < 1e-5);
}

TEST_CASE("two modules in one program") {
  check_same_in_all_worlds("two_modules");
}

TEST_CASE("a parameter that the loss does not use is zero on request, otherwise an error") {
  check_same_in_all_worlds("find_unused");
  const auto refused = run(2, "unused");
  CHECK(refused.code == 1);
  CHECK_MESSAGE(contains(refused.err, "no gradient in this step for \"unused.weight\", \"unused.bias\""), refused.err);
  CHECK(contains(refused.err, "set find_unused_parameters"));
  const auto many = run(2, "many_unused");
  CHECK(many.code == 1);
  CHECK_MESSAGE(contains(many.err, "\"4.weight\" and 51 more: the loss"), many.err);
}

TEST_CASE("after backward, the buffers are those of rank 0") {
  const auto result = run(3, "buffers");
  REQUIRE_MESSAGE(result.code == 0, result.err);
  const auto states = states_in(result.out);
  REQUIRE(states.size() == 3);
  CHECK(states[1] == states[0]);
  CHECK(states[2] == states[0]);
}

TEST_CASE("buffers of types that no backend reduces") {
  const Words lines = lines_of(run(2, "odd_buffers"));
  CHECK(lines == Words{"mask 0 of 1, angle 0", "mask 0 of 1, angle 0"});
}

TEST_CASE("collectives on tensors") {
  CHECK(run(1, "tensors").out == "1 0 0 0 1\n");
  const auto three = run(3, "tensors");
  REQUIRE_MESSAGE(three.code == 0, three.err);
  for (const char* line : {"6 2 2 0 10 20 3\n", "6 2 2 0 10 20 15\n", "6 2 2 0 10 20 27\n"}) {
    CHECK_MESSAGE(contains(three.out, line), three.out);
  }
  const auto mismatch = run(2, "mismatch");
  CHECK(mismatch.code == 5);
  CHECK_MESSAGE(contains(mismatch.err, "mismatch: "), mismatch.err);
}

TEST_CASE("DistributedSampler has the indices of PyTorch's") {
  // list(DistributedSampler(range(10), 3, rank, seed=3)) after set_epoch(2), of PyTorch 2.11
  const auto result = run(3, "sampler");
  REQUIRE_MESSAGE(result.code == 0, result.err);
  for (const std::string line : {"rank 0: 1 6 0 7 | \n", "rank 1: 4 3 2 1 | \n", "rank 2: 9 5 8 4 | \n"}) {
    CHECK_MESSAGE(contains(result.out, line), result.out);
  }
}

TEST_CASE("errors: one line, the exit code of the cause, and no rank stays") {
  const auto shapes = run(2, "shapes");
  CHECK(shapes.code == 4);
  CHECK_MESSAGE(
      contains(shapes.err,
               "the ranks have different models: rank 0 has \"first.weight\" Float [8, 4] requires_grad where "
               "rank 1 has \"first.weight\" Float [9, 4] requires_grad; construct the same on all ranks"),
      shapes.err);
  const auto options = run(2, "other_options");
  CHECK(options.code == 4);
  CHECK_MESSAGE(contains(options.err,
                         "the ranks have different DistributedDataParallelOptions: rank 0 has find_unused_parameters = "
                         "false where rank 1 has find_unused_parameters = true"),
                options.err);
  const auto added = run(2, "added");
  CHECK(added.code == 1);
  CHECK_MESSAGE(
      contains(added.err,
               "parameter \"late.weight\" was added or unfrozen after DistributedDataParallel was constructed"),
      added.err);
  const auto frozen = run(2, "frozen");
  CHECK(frozen.code == 1);
  CHECK_MESSAGE(contains(frozen.err, "parameter \"first.weight\" was removed, frozen or tied to another one after"),
                frozen.err);
  const auto by_rank = run(2, "frozen_by_rank");
  CHECK(by_rank.code == 4);
  CHECK_MESSAGE(contains(by_rank.err,
                         "rank 0 has \"0.weight\" Float [3, 3] where rank 1 has \"0.weight\" Float "
                         "[3, 3] requires_grad"),
                by_rank.err);
  const auto throws = run(2, "throws");
  CHECK(throws.code == 1);
  CHECK_MESSAGE(contains(throws.err, "the disk is on fire"), throws.err);
  CHECK(contains(throws.err, "rank 1"));
  const auto missing = run(2, "train", "glo");
  CHECK(missing.code == 3);
  CHECK_MESSAGE(contains(missing.err, "comm plugin \"glo\": not found"), missing.err);
}

TEST_CASE("ranks that another launcher has started") {
  for (const std::string act : {"train", "throws"}) {
    CAPTURE(act);
    const auto results = run_by_environment(2, act);
    for (const std::size_t rank : {0U, 1U}) {
      const auto& result = results[rank];
      const int of_failure = rank == 1 ? 1 : 5;  // rank 0 has lost its peer
      CHECK_MESSAGE(result.code == (act == "train" ? 0 : of_failure), result.err);
      if (act == "throws") CHECK_MESSAGE(contains(result.err, "the disk is on fire"), result.err);
    }
  }
}

}  // namespace
}  // namespace ddprun::testing
