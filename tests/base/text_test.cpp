#include "base/text.hpp"

#include <doctest/doctest.h>

namespace ddprun {
namespace {

TEST_CASE("the words of a list are separated by commas, the last two by an and") {
  CHECK(enumerated({}).empty());
  CHECK(enumerated({"a"}) == "a");
  CHECK(enumerated({"a", "b"}) == "a and b");
  CHECK(enumerated({"a", "b", "c"}) == "a, b and c");
}

}  // namespace
}  // namespace ddprun
