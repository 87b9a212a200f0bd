#include "base/enumerated.hpp"

#include <doctest/doctest.h>

TEST_CASE("the words of a list are separated by commas, the last two by an and") {
  CHECK(ddprun::enumerated({}).empty());
  CHECK(ddprun::enumerated({"a"}) == "a");
  CHECK(ddprun::enumerated({"a", "b"}) == "a and b");
  CHECK(ddprun::enumerated({"a", "b", "c"}) == "a, b and c");
}
