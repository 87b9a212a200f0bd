// Backwards that are not simple.
#include "ddp/launched.hpp"

namespace ddprun::testing {
namespace {

TEST_CASE("activation checkpointing: a backward inside of another belongs to it") {
  check_same_in_all_worlds("checkpoint_once");
  check_same_in_all_worlds("checkpoint_static");
  // Both checkpoints use the layer, so it has two gradients in each step.
  const auto refused = run(2, "checkpoint_twice");
  CHECK(refused.code == 1);
  CHECK_MESSAGE(contains(refused.err, "\"hidden."), refused.err);
  CHECK_MESSAGE(contains(refused.err,
                         "\" got its gradient twice in one step: set static_graph if the model uses "
                         "activation checkpointing"),
                refused.err);
}

TEST_CASE("a loss of two modules, each with its DistributedDataParallel") {
  check_same_in_all_worlds("encoder_decoder", 1e-4);
  const auto result = run(2, "encoder_decoder_compressed");
  REQUIRE_MESSAGE(result.code == 0, result.err);
  auto states = states_in(result.out);  // of the encoder and the decoder, on each rank
  REQUIRE(states.size() == 4);
  std::sort(states.begin(), states.end());
  CHECK(states[0] == states[1]);
  CHECK(states[2] == states[3]);
  CHECK(states[1] != states[2]);
}

TEST_CASE("parameters that a rank does not use, and one that none uses") {
  const auto expected = states_in(run(1, "unused_by_rank").out);
  REQUIRE(expected.size() == 1);
  for (const char* act : {"unused_by_rank", "unused_static"}) {
    CAPTURE(act);
    const auto result = run(2, act);
    REQUIRE_MESSAGE(result.code == 0, result.err);
    CHECK_FALSE(contains(result.out, "a gradient that no rank has"));
    const auto states = states_in(result.out);
    REQUIRE(states.size() == 2);
    for (const auto& state : states) {
      CHECK(std::abs(state.first - expected[0].first) < 1e-5);
      CHECK(std::abs(state.second - expected[0].second) < 1e-5);
    }
  }
}

TEST_CASE("a second backward adds to the averages of the first") {
  check_same_in_all_worlds("twice");
  check_same_in_all_worlds("twice_copied");
  CHECK(states_in(run(1, "twice").out) == states_in(run(1, "twice_copied").out));
}

TEST_CASE("gradients are views of a bucket, unless gradient_as_bucket_view is off") {
  const auto views = run(2, "views"), copies = run(2, "copies");
  CHECK_MESSAGE(contains(views.out, "[rank1] one bucket\n"), views.out << views.err);
  CHECK_MESSAGE(contains(copies.out, "[rank1] own memory\n"), copies.out << copies.err);
  CHECK(run(1, "views").out == "own memory\n");  // there is nothing to average
}

TEST_CASE("after a backward that threw on all ranks, training continues") {
  check_same_in_all_worlds("backward_throws");
  check_same_in_all_worlds("backward_throws_static");
  CHECK(states_in(run(1, "backward_throws").out) == states_in(run(1, "backward_throws_static").out));
}

TEST_CASE("two backwards through one graph, with BatchNorm") {
  for (const int ranks : {1, 2}) {
    const Words lines = lines_of(run(ranks, "one_graph_twice"));
    CHECK(lines == Words(static_cast<std::size_t>(ranks), "finite"));
  }
}

TEST_CASE("static_graph: buckets have the order of the gradients, and a new parameter is an error") {
  CHECK(lines_of(run(2, "static_order")) == Words(2, "last layer"));
  const auto changed = run(2, "static_changed");
  CHECK(changed.code == 1);
  CHECK_MESSAGE(contains(changed.err, "parameter \"unused.weight\" has a gradient, but had none in the first step"),
                changed.err);
}

TEST_CASE("a sparse gradient is refused") {
  const auto refused = run(2, "sparse");
  CHECK(refused.code == 1);
  CHECK_MESSAGE(contains(refused.err,
                         "parameter \"weight\" has a sparse gradient, which cannot be averaged: construct "
                         "the module without sparse gradients"),
                refused.err);
}

}  // namespace
}  // namespace ddprun::testing
