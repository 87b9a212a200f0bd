#include "ddprun/plugin/words.hpp"

#include <doctest/doctest.h>

namespace ddprun {
namespace {

TEST_CASE("a suggestion is made for a typing error only") {
  const std::vector<std::string> names = {"auto", "ring", "tree", "nccl"};
  CHECK(did_you_mean("rign", names) == " (did you mean \"ring\"?)");   // swapped
  CHECK(did_you_mean("rin", names) == " (did you mean \"ring\"?)");    // left out
  CHECK(did_you_mean("rring", names) == " (did you mean \"ring\"?)");  // put in
  CHECK(did_you_mean("rung", names) == " (did you mean \"ring\"?)");   // replaced
  CHECK(did_you_mean("NCCL", names) == " (did you mean \"nccl\"?)");
  CHECK(did_you_mean("wombat", names) == "");
  CHECK(did_you_mean("gpu", {"cpu", "cuda"}) == "");
  CHECK(did_you_mean("sdg", {"sgd"}) == " (did you mean \"sgd\"?)");
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

TEST_CASE("foreign text keeps its letters and loses terminal control characters") {
  for (const char* kept : {"", "a b~", "caf\xc3\xa9", "\xc2\xa0", "\xe2\x82\xac", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xf0\x9f\x90\x88", "\xf4\x8f\xbf\xbf"}) {
    CHECK(printable(kept) == kept);
  }
  CHECK(printable(std::string_view("a\0b\n\x1b[2J\x7f", 9)) == "a?b??[2J?");
  CHECK(printable("\xc2\x9b[2J") == "??[2J");                // C1: the CSI of eight bits
  CHECK(printable("\xc2\x80\xc2\x9f") == "????");            // first and last C1
  CHECK(printable("\x9b\xff\xf8") == "???");                 // not the first byte of a character
  CHECK(printable("\xc0\x9b\xe0\x82\x9b") == "?????");       // overlong forms of U+001B and U+009B
  CHECK(printable("\xf0\x80\x80\x9b") == "????");            // another
  CHECK(printable("\xed\xa0\x80\xed\xbf\xbf") == "??????");  // surrogates
  CHECK(printable("\xf4\x90\x80\x80") == "????");            // beyond U+10FFFF
  CHECK(printable("x\xc3") == "x?");                         // truncated
  CHECK(printable("\xe2\x82g") == "??g");
}

}  // namespace
}  // namespace ddprun
