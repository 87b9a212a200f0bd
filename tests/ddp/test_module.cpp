#include "ddp/launched.hpp"

namespace ddprun::testing {
namespace {

void check_refused(const std::string& act, const std::string& words, int code = 1) {
  for (const int ranks : {1, 2}) {
    CAPTURE(ranks);
    const auto refused = run(ranks, act);
    CHECK(refused.code == code);
    CHECK_MESSAGE(contains(refused.err, words), act << ": " << refused.out << refused.err);
  }
}

TEST_CASE("gradients are averaged after values were loaded into the module, or it was converted and back") {
  const auto expected = states_in(run(1, "unchanged").out);
  REQUIRE(expected.size() == 1);
  for (const std::string act :
       {"unchanged", "load_whole", "load_part", "load_part_unused", "to_double_and_back", "set_data"}) {
    CAPTURE(act);
    check_same_in_all_worlds(act);
    CHECK(std::abs(states_in(run(2, act).out)[0].second - expected[0].second) < 1e-6);
  }
}

TEST_CASE("a parameter that changed under DistributedDataParallel is an error that names it") {
  check_refused("to_double",
                "parameter \"first.weight\" changed from Float [8, 4] on cpu to Double [8, 4] on cpu after");
  check_refused("reshaped", "parameter \"second.bias\" changed from Float [3] on cpu to Float [1] on cpu after");
  for (const std::string act : {"replaced", "replaced_unused", "replaced_in_no_sync"}) {
    check_refused(act, "parameter \"second.weight\" was replaced after");
  }
  check_refused("replaced_all", "parameter \"first.weight\" was replaced after");
  check_refused("tied", "parameter \"1.weight\" was removed, frozen or tied to another one after");
  check_refused("registered", "parameter \"second.scale\" was added or unfrozen after");
  check_refused("unfrozen", "parameter \"first.weight\" was added or unfrozen after");
}

TEST_CASE("a parameter belongs to one DistributedDataParallel object at a time") {
  for (const std::string act : {"common_layer", "common_layer_views"}) {
    check_refused(act, "parameter \"first.weight\" belongs to another DistributedDataParallel object", 2);
  }
  check_same_in_all_worlds("common_parent");
  check_same_in_all_worlds("constructed_again");
}

TEST_CASE("a buffer that was added later is broadcast too") {
  CHECK(lines_of(run(2, "new_buffer")) == Words{"count 5", "count 5"});
}

TEST_CASE("complex parameters and buffers") {
  for (const std::string act : {"complex_buffer", "complex_parameter", "complex_parameter_views"}) {
    check_same_in_all_worlds(act);
  }
  for (const std::string act : {"complex_power_sgd", "complex_fp16"}) {
    CAPTURE(act);
    const auto states = states_in(run(2, act).out), expected = states_in(run(1, "complex_parameter").out);
    REQUIRE(states.size() == 2);
    CHECK(states[0] == states[1]);
    CHECK(std::abs(states[0].second - expected[0].second) < 1e-2);
  }
  const auto collectives = run(2, "complex_collectives");
  CHECK_MESSAGE(contains(collectives.out, "1 1 1"), collectives.out);
  CHECK_MESSAGE(contains(collectives.err, "a reduction of complex numbers: expected Op::sum or Op::avg"),
                collectives.err);
}

TEST_CASE("an undefined gradient counts as zero") {
  CHECK(lines_of(run(2, "undefined_gradient")) == Words{"0", "0"});
}

TEST_CASE("gradients that the program keeps stay as they are") {
  for (const int ranks : {1, 2}) {
    CHECK(lines_of(run(ranks, "kept_gradients")) == Words(static_cast<std::size_t>(ranks), "1 5 3"));
  }
}

}  // namespace
}  // namespace ddprun::testing
