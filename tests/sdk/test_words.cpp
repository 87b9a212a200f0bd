#include "ddprun/words.hpp"

#include <doctest/doctest.h>

namespace ddprun {
namespace {

TEST_CASE("a suggestion is made for a slip of the hand and for nothing else") {
  const std::vector<std::string> names = {"auto", "ring", "tree", "nccl"};
  CHECK(did_you_mean("rign", names) == " (did you mean \"ring\"?)");   // swapped
  CHECK(did_you_mean("rin", names) == " (did you mean \"ring\"?)");    // left out
  CHECK(did_you_mean("rring", names) == " (did you mean \"ring\"?)");  // put in
  CHECK(did_you_mean("rung", names) == " (did you mean \"ring\"?)");   // replaced
  CHECK(did_you_mean("NCCL", names) == " (did you mean \"nccl\"?)");
  CHECK(did_you_mean("wombat", names) == "");
  CHECK(did_you_mean("rugs", names) == "");
  CHECK(did_you_mean("", names) == "");
  CHECK(did_you_mean("x", {"y"}) == "");
  CHECK(did_you_mean("ring", {}) == "");
  CHECK(did_you_mean("momemtun", {"momentum", "moment"}) == " (did you mean \"momentum\"?)");
  CHECK(did_you_mean(std::string(100000, 'x'), names) == "");
}

TEST_CASE("a list of names reads as a sentence") {
  CHECK(quoted_list({}) == "");
  CHECK(quoted_list({"a"}) == "\"a\"");
  CHECK(quoted_list({"a", "b"}) == "\"a\" or \"b\"");
  CHECK(quoted_list({"a", "b", "c"}, " and ") == "\"a\", \"b\" and \"c\"");
  CHECK(expected_one_of("rign", {"ring", "tree"}) == "expected \"ring\" or \"tree\" (did you mean \"ring\"?)");
}

}  // namespace
}  // namespace ddprun
