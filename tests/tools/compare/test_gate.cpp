#include <doctest/doctest.h>

#include "support/error_of.hpp"
#include "support/text.hpp"
#include "tools/compare/comparison.hpp"

using namespace ddprun::compare;
using ddprun::testing::contains;
using ddprun::testing::error_of;

namespace {
const std::vector<std::string> kNames = {"a", "gloo ring", "./x/lib.so ring"};
}

TEST_CASE("a gate has two variants and a limit") {
  Gate gate = parse_gate("gloo ring/a <= 1.02", kNames);
  CHECK(gate.over == 1);
  CHECK(gate.under == 0);
  CHECK(gate.at_most);
  CHECK(gate.bound == 1.02);
  gate = parse_gate(" 1 / 3>=0.5 ", kNames);
  CHECK(gate.over == 0);
  CHECK(gate.under == 2);
  CHECK_FALSE(gate.at_most);
  gate = parse_gate("./x/lib.so ring/a<2", kNames);
  CHECK(gate.over == 2);
}

TEST_CASE("an invalid gate is an error that says what was expected") {
  const auto refusal_of = [](const char* text) { return error_of([&] { parse_gate(text, kNames); }); };
  CHECK(contains(refusal_of("a/b <= 1"), "2: --gate 'a/b <= 1': expected VARIANT/VARIANT before the sign, of \"a\""));
  CHECK(contains(refusal_of("4/1 <= 1"), "expected VARIANT/VARIANT"));
  CHECK(contains(refusal_of("1/2"), "expected <= or >="));
  CHECK(contains(refusal_of("1/2 <="), "expected a number above 0"));
  CHECK(contains(refusal_of("1/2 <= 1.0x"), "expected a number above 0"));
  CHECK(contains(refusal_of("1/2 <= -1"), "expected a number above 0"));
  CHECK(contains(refusal_of("1/2 <= nan"), "expected a number above 0"));
  CHECK(contains(refusal_of("1/a <= 1"), "compared with itself"));
  CHECK(contains(refusal_of(""), "expected <= or >="));
}

TEST_CASE("a gate holds if the whole interval is within its limit") {
  const Gate most = parse_gate("2/1 <= 1.02", kNames), least = parse_gate("2/1 >= 0.9", kNames);
  CHECK(holds(most, {1.0, 0.99, 1.02, 0.5}));
  CHECK_FALSE(holds(most, {1.0, 0.98, 1.03, 0.5}));
  CHECK(holds(least, {1.0, 0.95, 1.5, 0.5}));
  CHECK_FALSE(holds(least, {1.0, 0.85, 1.5, 0.5}));
}
